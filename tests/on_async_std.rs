//! The scenarios on async-std. Servers apart, nothing in them touches tokio's runtime.

use async_std::task::block_on;

mod connections {
    connection_scenarios!(tests!
        "async-std", chronicle_connection_async_std::AsyncStd, crate::on_async_std::block_on:);
}

mod clients {
    client_scenarios!(tests!
        "async-std", chronicle_connection_async_std::AsyncStd, crate::on_async_std::block_on:);
}
