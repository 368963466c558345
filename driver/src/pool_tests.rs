use crate::{
    pool::{Lease, Pool},
    testing::{Order, Peer, Server, soon},
    tokio_runtime::Tokio,
};
use chronicle_connection::{Failure, FailureKind};
use http::Request;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tonic::body::Body;

#[tokio::test]
async fn streams_are_kept_to_the_limit_of_the_peer_and_the_next_transport_takes_the_rest() {
    let (server, pool) = pool().await;
    let leases = lease(&pool, 5);
    let first = accept(&server, 2).await;
    let second = accept(&server, 2).await;
    let third = accept(&server, 2).await;
    let mut held = Vec::new();
    for lease in leases {
        held.push(granted(lease).await);
    }
    // The third transport has room, and no other one is opened for it.
    held.push(granted(lease(&pool, 1).remove(0)).await);
    held.remove(0);
    held.push(granted(lease(&pool, 1).remove(0)).await);
    assert_eq!(held.len(), 6);
    drop((first, second, third));
}

#[tokio::test]
async fn a_stream_that_comes_free_goes_to_who_waits_longest() {
    let (server, pool) = pool().await;
    let first = lease(&pool, 1).remove(0);
    let _peer = accept(&server, 1).await;
    let first = granted(first).await;
    // Nobody accepts the transport that is opened for these.
    let mut waiting = lease(&pool, 3);
    tokio::task::yield_now().await;
    waiting[0].abort();
    assert!(waiting.remove(0).await.is_err());
    assert!(!waiting[0].is_finished());
    drop(first);
    let _second = granted(waiting.remove(0)).await;
    tokio::task::yield_now().await;
    assert!(!waiting[0].is_finished());
}

#[tokio::test]
async fn a_transport_that_is_going_away_keeps_its_streams_and_gets_no_more() {
    let (server, pool) = pool().await;
    let old = lease(&pool, 1).remove(0);
    let mut peer = accept(&server, 10).await;
    let old = granted(old).await;
    let request = Request::post("/live").body(Body::empty()).unwrap();
    let live = tokio::spawn(old.lane().clone().send(request, ()));
    let served = soon(peer.requests.recv()).await.unwrap();
    let health = old.lane().health().clone();
    peer.orders.send(Order::GoAwayGracefully).ok().unwrap();
    let is_told = |health: &crate::socket::Health| health.going_away.is_some();
    soon(health.clone().wait_for(is_told)).await.unwrap();
    let new = lease(&pool, 1).remove(0);
    let _second = accept(&server, 10).await;
    let _new = granted(new).await;
    assert!(!live.is_finished());
    assert_eq!(health.borrow().ended, None);
    drop(old);
    soon(live).await.unwrap().unwrap_err();
    soon(peer.gone).await.unwrap();
    drop(served);
}

#[tokio::test]
async fn the_end_of_the_session_closes_everything_and_ends_the_wait() {
    let (server, pool) = pool().await;
    let held = lease(&pool, 1).remove(0);
    let peer = accept(&server, 1).await;
    let held = granted(held).await;
    let waiting = lease(&pool, 3);
    let opening = soon(server.tcp()).await;
    pool.end();
    soon(peer.gone).await.unwrap();
    for waiting in waiting {
        assert!(soon(waiting).await.unwrap().is_none());
    }
    assert!(soon(pool.lease()).await.is_none());
    // The transport that was being opened is gone as well.
    let closed = async {
        let mut rest = [0; 1024];
        loop {
            opening.readable().await.unwrap();
            match opening.try_read(&mut rest) {
                Ok(0) => return,
                Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => return,
                Ok(_) | Err(_) => {}
            }
        }
    };
    soon(closed).await;
    drop(held);
}

#[tokio::test]
async fn who_waits_for_a_transport_that_cannot_be_opened_is_told_why() {
    let (server, pool) = pool().await;
    drop(server);
    for lease in lease(&pool, 3) {
        let failure = soon(lease).await.unwrap().unwrap().err().unwrap();
        assert_eq!(failure.kind, FailureKind::Refused, "{failure}");
    }
}

#[tokio::test]
async fn a_peer_that_allows_no_streams_is_of_no_use() {
    let (server, pool) = pool().await;
    let waiting = lease(&pool, 1).remove(0);
    let _peer = accept(&server, 0).await;
    let failure = soon(waiting).await.unwrap().unwrap().err().unwrap();
    assert_eq!(failure.kind, FailureKind::Protocol, "{failure}");
}

async fn pool() -> (Server, Arc<Pool<Tokio>>) {
    let server = Server::new().await;
    let pool = server.pool();
    (server, pool)
}

type Promise = JoinHandle<Option<Result<Lease<Tokio>, Failure>>>;

fn lease(pool: &Arc<Pool<Tokio>>, streams: usize) -> Vec<Promise> {
    let lease = |_| {
        let pool = Arc::clone(pool);
        tokio::spawn(async move { pool.lease().await })
    };
    (0..streams).map(lease).collect()
}

async fn granted(promise: Promise) -> Lease<Tokio> {
    soon(promise).await.unwrap().unwrap().unwrap()
}

async fn accept(server: &Server, max_streams: u32) -> Peer {
    let mut http2 = h2::server::Builder::new();
    http2.max_concurrent_streams(max_streams);
    soon(server.accept_with(&http2)).await.unwrap()
}
