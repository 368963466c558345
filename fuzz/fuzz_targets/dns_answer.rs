#![no_main]

#[path = "../src/dns_answer.rs"]
mod dns_answer;

libfuzzer_sys::fuzz_target!(|data: &[u8]| dns_answer::check(data));
