//! What a Chronicle server keeps about its clients, without I/O: counts, reservations, eviction,
//! keep-alives, ages and verdicts.
