//! How many events one machine handles in a second on one core: each is an input, given with the
//! time, and all outputs that come of it. A million is the least that is asked of it.

#[allow(dead_code, reason = "shared by two benchmarks")]
mod bare;

use bare::{Bare, shared};
use chronicle_connection::Contract;
use divan::{Bencher, counter::ItemsCount};
use std::time::Instant;

fn main() {
    divan::main();
}

/// Keep-alives, answers and acknowledgements: what a connected machine does all its life.
#[divan::bench]
fn keep_alives(bencher: Bencher<'_, '_>) {
    let mut bare = connected();
    let before = bare.events;
    bare.keep_alive();
    let events = bare.events - before;
    bencher
        .counter(ItemsCount::new(events))
        .bench_local(|| bare.keep_alive());
}

/// A session of six keep-alives, its loss, and the whole way to the next one: three dials, three
/// probes, the reservation, the check and the registration.
#[divan::bench]
fn reconnects(bencher: Bencher<'_, '_>) {
    let mut bare = connected();
    let before = bare.events;
    bare.lose();
    bare.connect();
    let events = bare.events - before;
    bencher.counter(ItemsCount::new(events)).bench_local(|| {
        bare.lose();
        bare.connect();
    });
}

#[allow(clippy::disallowed_methods, reason = "the edge of virtual time")]
fn connected() -> Bare {
    let mut bare = Bare::new(shared(), Contract::default(), 1, Instant::now());
    bare.connect();
    bare
}
