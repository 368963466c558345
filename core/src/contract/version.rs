//! Which of two versions is the newer one.

/// Whether one version is known to be newer than another.
///
/// Versions are compared number by number; what follows a `-` or a `+` does not count. One that is
/// not made of numbers, or of zeros alone (a build that was given no version), is unknown, and then
/// neither is newer.
pub fn is_newer(version: &str, than: &str) -> bool {
    match (numbers(version), numbers(than)) {
        (Some(version), Some(than)) => version > than,
        (None, _) | (_, None) => false,
    }
}

/// Whether a text is a version made of numbers. One of zeros alone is, though it says nothing.
pub fn is_version(text: &str) -> bool {
    components(text).is_some()
}

/// The numbers without zeros at the end, so that 16.1 equals 16.1.0.
fn numbers(version: &str) -> Option<Vec<u64>> {
    let mut numbers = components(version)?;
    while numbers.last() == Some(&0) {
        numbers.pop();
    }
    (!numbers.is_empty()).then_some(numbers)
}

fn components(version: &str) -> Option<Vec<u64>> {
    let version = version.trim();
    let version = version.strip_prefix(['v', 'V']).unwrap_or(version);
    let release = version.split(['-', '+']).next()?;
    let mut numbers = Vec::new();
    for component in release.split('.') {
        if !component.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        numbers.push(component.parse().ok()?);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::{is_newer, is_version};

    #[test]
    fn versions_are_compared_number_by_number() {
        for (older, newer) in [
            ("16.9.4", "16.34.0"),
            ("16.34", "16.34.1"),
            ("15.7.1", "v17"),
            ("16.34.0.1", "16.34.0.2"),
            ("1.0.0-rc.9", "1.0.1-alpha"),
            (" 1.2.3 ", "1.2.4+build.7"),
        ] {
            assert!(is_version(newer) && is_version(older), "{newer} {older}");
            assert!(is_newer(newer, older), "{newer} is newer than {older}");
            assert!(!is_newer(older, newer), "{older} is not newer than {newer}");
        }
    }

    #[test]
    fn a_suffix_or_a_zero_at_the_end_makes_no_version_newer() {
        for (one, other) in [
            ("16.34.0", "16.34.0"),
            ("16.34.0", "16.34"),
            ("16.34.0-preview.1", "16.34.0"),
            ("16.34.0+5f1c", "16.34.0-pr99"),
        ] {
            assert!(
                !is_newer(one, other) && !is_newer(other, one),
                "{one} {other}"
            );
        }
    }

    #[test]
    fn an_unknown_version_is_neither_older_nor_newer() {
        for unknown in [
            "",
            " ",
            "latest",
            "16.x",
            "16..1",
            ".1",
            "1.",
            "-1",
            "+1",
            "0.0.0",
            "1.2.a",
            "99999999999999999999999.1",
            "v",
            "1,2",
        ] {
            assert_eq!(is_version(unknown), unknown == "0.0.0", "{unknown:?}");
            assert!(!is_newer(unknown, "1.0.0"), "{unknown:?}");
            assert!(!is_newer("1.0.0", unknown), "{unknown:?}");
        }
    }
}
