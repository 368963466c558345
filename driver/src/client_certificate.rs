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

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair};

    struct Made {
        certificate: rcgen::Certificate,
        key: KeyPair,
    }

    fn made() -> Made {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::default().self_signed(&key).unwrap();
        Made { certificate, key }
    }

    fn parse(bytes: &[u8]) -> Result<ClientCertificate, TlsSetupError> {
        ClientCertificate::parse(bytes, None)
    }

    #[test]
    fn pem_holds_certificate_and_key_in_any_order() {
        let made = made();
        let (certificate, key) = (made.certificate.pem(), made.key.serialize_pem());
        for pem in [
            [&*certificate, &key].concat(),
            [&*key, &certificate].concat(),
        ] {
            let read = parse(pem.as_bytes()).unwrap();
            assert_eq!(read.chain, [made.certificate.der().clone()]);
            assert_eq!(read.key.secret_der(), made.key.serialize_der());
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_told() {
        let made = made();
        let certificate = made.certificate.pem();
        let locked =
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n";
        for (content, part) in [
            (certificate.clone(), "no private key"),
            ([&*certificate, locked].concat(), "decrypted"),
            (made.key.serialize_pem(), "no certificate"),
            ("-----BEGIN CERTIFICATE-----\n!".to_owned(), "malformed"),
            ("hello".to_owned(), "neither PEM nor PKCS#12"),
            (String::new(), "neither PEM nor PKCS#12"),
        ] {
            let error = parse(content.as_bytes()).err().unwrap();
            assert!(matches!(error, TlsSetupError::Certificate(_)), "{error}");
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let path = Path::new("no/such/certificate.pem");
        let error = ClientCertificate::read(path, None).err().unwrap();
        assert!(
            matches!(error, TlsSetupError::CertificateFile { .. }),
            "{error}"
        );
        assert!(
            error.to_string().contains("no/such/certificate.pem"),
            "{error}"
        );
    }

    #[cfg(not(feature = "pkcs12"))]
    #[test]
    fn without_the_feature_pkcs12_is_told_as_such() {
        let error = parse(&[SEQUENCE, 0]).err();
        assert_eq!(error, Some(TlsSetupError::NoPkcs12));
    }

    #[cfg(feature = "pkcs12")]
    #[test]
    fn pkcs12_opens_with_its_password_alone() {
        use p12_keystore::{
            Certificate, EncryptionAlgorithm, KeyStore, KeyStoreEntry, PrivateKey, PrivateKeyChain,
        };
        let made = made();
        let certificate = Certificate::from_der(made.certificate.der()).unwrap();
        let key = PrivateKey::from_der(&made.key.serialize_der()).unwrap();
        let chain = PrivateKeyChain::new("1", key, [certificate]);
        let mut store = KeyStore::new();
        store.add_entry("client", KeyStoreEntry::PrivateKeyChain(chain));
        let writer = store.writer("right");
        let writer = writer.encryption_algorithm(EncryptionAlgorithm::PbeWithHmacSha256AndAes256);
        let bytes = writer.write().unwrap();

        let right = Secret::new("right");
        let read = ClientCertificate::parse(&bytes, Some(&right)).unwrap();
        assert_eq!(read.chain, [made.certificate.der().clone()]);
        assert_eq!(read.key.secret_der(), made.key.serialize_der());
        for wrong in [None, Some(Secret::new("wrong"))] {
            let error = ClientCertificate::parse(&bytes, wrong.as_ref()).err();
            assert_eq!(error, Some(TlsSetupError::CertificatePassword));
        }
        let error = ClientCertificate::parse(&bytes[..40], Some(&right)).err();
        assert!(
            matches!(error, Some(TlsSetupError::Certificate(_))),
            "{error:?}"
        );
    }
}
