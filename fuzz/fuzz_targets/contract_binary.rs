#![no_main]

#[path = "../src/contract.rs"]
#[allow(dead_code, reason = "each target calls one")]
mod contract;

libfuzzer_sys::fuzz_target!(|data: &[u8]| contract::check_binary(data));
