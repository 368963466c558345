//! Judges a client's contract against a server's: who expects what of whom.

use super::{Incompatibility, IncompatibilityKind as Kind, Schema, diff, version::is_newer};

/// What came of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// What makes the two sides incompatible.
    pub incompatibilities: Vec<Incompatibility>,
    /// What only the client knows, because it is newer: it does not work with this server, and
    /// breaks nothing else.
    pub missing_on_server: Vec<Incompatibility>,
}

impl Comparison {
    /// Whether everything that makes the sides incompatible would be forgiven a client that is
    /// known to be the newer one.
    pub(crate) fn hinges_on_versions(&self) -> bool {
        let mut kinds = self.incompatibilities.iter().map(|finding| finding.kind);
        !self.is_compatible() && kinds.all(can_be_gained)
    }

    /// Whether the two sides may talk to each other.
    pub fn is_compatible(&self) -> bool {
        self.incompatibilities.is_empty()
    }
}

/// Compares the contracts of a client and a server, with the client as the expected side (S2, "The
/// wire-compatibility handshake").
///
/// There is one exception. Where the client's version is known to be the newer one, a message, a
/// field, an enum or an enum value that only the client knows was gained since that server was
/// built, and not removed from it. It is listed as missing, and is no incompatibility. A service or
/// a method is one in any case, since calling it can only fail.
pub fn compare(
    client: &Schema,
    client_version: &str,
    server: &Schema,
    server_version: &str,
) -> Comparison {
    let is_newer = is_newer(client_version, server_version);
    let (missing_on_server, incompatibilities) = diff(client, server)
        .into_iter()
        .partition(|finding| is_newer && can_be_gained(finding.kind));
    Comparison {
        incompatibilities,
        missing_on_server,
    }
}

fn can_be_gained(kind: Kind) -> bool {
    match kind {
        Kind::MessageRemoved | Kind::FieldRemoved | Kind::EnumRemoved | Kind::EnumValueRemoved => {
            true
        }
        Kind::ServiceRemoved
        | Kind::MethodRemoved
        | Kind::MethodSignatureChanged
        | Kind::MethodStreamingChanged
        | Kind::FieldTypeChanged
        | Kind::FieldLabelChanged
        | Kind::FieldRenamed
        | Kind::FieldOneOfChanged
        | Kind::EnumValueRenamed => false,
    }
}
