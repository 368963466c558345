//! The scenarios on async-std. Servers apart, nothing in them touches tokio's runtime.

scenarios!(
    chronicle_connection_async_std::AsyncStd,
    async_std::task::block_on
);
