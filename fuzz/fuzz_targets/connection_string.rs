#![no_main]

#[path = "../src/connection_string.rs"]
mod connection_string;

libfuzzer_sys::fuzz_target!(|data: &[u8]| connection_string::check(data));
