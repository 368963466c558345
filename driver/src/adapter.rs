//! The public face of an adapter.

/// The words that an application finds in an adapter, the same in each: everything of this crate and
/// of the core, on the runtime that the adapter implements.
///
/// At the root of an adapter, beside the `pub use` of its runtime, this is all that it exports:
/// `chronicle_connection_driver::adapter!(TheRuntime);`
#[macro_export]
macro_rules! adapter {
    ($runtime:ty) => {
        pub use $crate::{
            ConnectError, Events, IntoConnectionString, NoRuntime, Notice, TlsSetupError,
            core::{self, *},
        };

        /// A connection that stays up; see
        /// [`Client::connect`](chronicle_connection_driver::Client::connect).
        pub type Client = $crate::Client<$runtime>;

        /// Where application calls go; see
        /// [`Client::channel`](chronicle_connection_driver::Client::channel).
        pub type Channel = $crate::Channel<$runtime>;

        /// What can be set about a connection; see
        /// [`Client::builder`](chronicle_connection_driver::Client::builder).
        pub type Builder = $crate::Builder<$runtime>;
    };
}
