//! The certificate that a client shows to servers.

use crate::TlsSetupError;
use chronicle_connection::Secret;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject};
use std::{fs, path::Path};
use zeroize::Zeroizing;

/// A chain of certificates, the client's own first, and its key.
pub(crate) struct ClientCertificate {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

impl ClientCertificate {
    /// Reads a file: PEM with certificates and a key, or PKCS#12.
    pub(crate) fn read(path: &Path, password: Option<&Secret>) -> Result<Self, TlsSetupError> {
        let bytes = fs::read(path).map_err(|error| TlsSetupError::CertificateFile {
            path: path.display().to_string(),
            error: error.to_string(),
        })?;
        Self::parse(&Zeroizing::new(bytes), password)
    }

    /// Reads the content of such a file.
    pub(crate) fn parse(bytes: &[u8], password: Option<&Secret>) -> Result<Self, TlsSetupError> {
        let is_pem = bytes.windows(BEGIN.len()).any(|part| part == BEGIN);
        match bytes.first() {
            Some(_) if is_pem => from_pem(bytes),
            Some(&SEQUENCE) => from_pkcs12(bytes, password),
            Some(_) | None => Err(invalid("it is neither PEM nor PKCS#12")),
        }
    }
}

fn from_pem(bytes: &[u8]) -> Result<ClientCertificate, TlsSetupError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| invalid(format!("its PEM is malformed: {error}")))?;
    if chain.is_empty() {
        return Err(invalid("its PEM holds no certificate"));
    }
    let key = PrivateKeyDer::from_pem_slice(bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => invalid(
            "its PEM holds no private key that is not encrypted; add the key to the file, \
             decrypted, or use PKCS#12",
        ),
        error => invalid(format!("its PEM is malformed: {error}")),
    })?;
    Ok(ClientCertificate { chain, key })
}

#[cfg(feature = "pkcs12")]
fn from_pkcs12(
    bytes: &[u8],
    password: Option<&Secret>,
) -> Result<ClientCertificate, TlsSetupError> {
    use p12_keystore::{KeyStore, Pkcs12ImportPolicy, error::Error};
    use rustls::pki_types::PrivatePkcs8KeyDer;
    let password = password.map_or("", Secret::expose);
    let store =
        KeyStore::from_pkcs12(bytes, password, Pkcs12ImportPolicy::Relaxed).map_err(|error| {
            match error {
                // A file without a checksum shows a wrong password only by what decrypts to nonsense.
                Error::MacError(_) | Error::UnpadError | Error::Pkcs5Error(_) => {
                    TlsSetupError::CertificatePassword
                }
                error => invalid(format!("its PKCS#12 is malformed: {error}")),
            }
        })?;
    let Some((_, found)) = store.private_key_chain() else {
        return Err(invalid("its PKCS#12 holds no private key"));
    };
    let chain: Vec<_> = found
        .certs()
        .iter()
        .map(|certificate| CertificateDer::from(certificate.as_der().to_vec()))
        .collect();
    if chain.is_empty() {
        return Err(invalid("its PKCS#12 holds no certificate for its key"));
    }
    let key = PrivatePkcs8KeyDer::from(found.key().as_der().to_vec());
    Ok(ClientCertificate {
        chain,
        key: key.into(),
    })
}

#[cfg(not(feature = "pkcs12"))]
fn from_pkcs12(_: &[u8], _: Option<&Secret>) -> Result<ClientCertificate, TlsSetupError> {
    Err(TlsSetupError::NoPkcs12)
}

fn invalid(what: impl Into<String>) -> TlsSetupError {
    TlsSetupError::Certificate(what.into())
}

const BEGIN: &[u8] = b"-----BEGIN ";
/// What PKCS#12, as all of DER, begins with.
const SEQUENCE: u8 = 0x30;
