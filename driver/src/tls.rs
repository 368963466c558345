//! TLS: always, 1.2 or 1.3, with ALPN `h2` alone.

use crate::{client_certificate::ClientCertificate, failures};
use chronicle_connection::{Endpoint, Failure, FailureKind, Host, TlsFailure};
use futures_io::{AsyncRead, AsyncWrite};
use futures_rustls::{TlsConnector, client::TlsStream};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use rustls_platform_verifier::Verifier;
use std::{fmt, sync::Arc};

/// How servers are trusted.
#[derive(Clone)]
pub(crate) struct Tls {
    connector: TlsConnector,
}

impl Tls {
    /// Trusts the roots of the platform and those in `extra_roots` (PEM); any certificate at all if
    /// `skip_validation`. Shows the certificate, where there is one, to servers that ask.
    pub(crate) fn new(
        skip_validation: bool,
        extra_roots: &[u8],
        certificate: Option<ClientCertificate>,
    ) -> Result<Self, TlsSetupError> {
        let provider = Arc::new(ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = if skip_validation {
            tracing::warn!(
                "server certificates are not validated (skipTlsValidation): anyone on the network \
                 can read and change what is sent"
            );
            Arc::new(AnyCertificate(Arc::clone(&provider)))
        } else {
            let roots = parse_roots(extra_roots)?;
            Arc::new(
                Verifier::new_with_extra_roots(roots, Arc::clone(&provider)).map_err(|error| {
                    TlsSetupError::new(format!(
                        "{error}; install the root certificates of the platform, name a file of \
                         them in SSL_CERT_FILE, or trust a root of your own (extra_roots)"
                    ))
                })?,
            )
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsSetupError::new)?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match certificate {
            None => config.with_no_client_auth(),
            Some(ClientCertificate { chain, key }) => config
                .with_client_auth_cert(chain, key)
                .map_err(|error| TlsSetupError::Certificate(error.to_string()))?,
        };
        config.alpn_protocols = vec![H2.to_vec()];
        Ok(Self {
            connector: Arc::new(config).into(),
        })
    }

    /// Makes a secure stream of a socket; the certificate is checked against the host of `to`.
    pub(crate) async fn handshake<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        to: &Endpoint,
        socket: S,
    ) -> Result<TlsStream<S>, Failure> {
        let name = match &to.host {
            Host::Name(name) => ServerName::try_from(name.clone())
                .map_err(|error| Failure::new(FailureKind::Dns, error.to_string()))?,
            Host::Ip(address) => ServerName::from(*address),
        };
        let stream = self
            .connector
            .connect(name, socket)
            .await
            .map_err(|error| failures::from_io(&error, FailureKind::Closed))?;
        if stream.get_ref().1.alpn_protocol() != Some(H2) {
            return Err(Failure::new(FailureKind::Tls(TlsFailure::NoHttp2), ""));
        }
        Ok(stream)
    }
}

/// Why TLS cannot be set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsSetupError {
    /// Roots that cannot be used, or a platform without any.
    Roots(String),
    /// The file of the client's certificate cannot be read.
    CertificateFile {
        /// The file.
        path: String,
        /// What the system says.
        error: String,
    },
    /// The password does not open the client's certificate, or is missing.
    CertificatePassword,
    /// The client's certificate, or its key, cannot be used.
    Certificate(String),
    /// The client's certificate is in PKCS#12, which this build cannot read.
    NoPkcs12,
}

impl TlsSetupError {
    fn new(error: impl fmt::Display) -> Self {
        Self::Roots(error.to_string())
    }
}

impl fmt::Display for TlsSetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Roots(what) => write!(f, "TLS cannot be set up: {what}"),
            Self::CertificateFile { path, error } => write!(
                f,
                "the client certificate {path:?} cannot be read ({error}); correct certificatePath"
            ),
            Self::CertificatePassword => f.write_str(
                "the password does not open the client certificate; correct certificatePassword",
            ),
            Self::Certificate(what) => {
                write!(f, "the client certificate cannot be used: {what}")
            }
            Self::NoPkcs12 => f.write_str(
                "the client certificate is in PKCS#12, which this build cannot read; enable the \
                 feature pkcs12, or use PEM",
            ),
        }
    }
}

impl std::error::Error for TlsSetupError {}

fn parse_roots(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsSetupError> {
    let roots = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsSetupError::new(format!("extra roots are not PEM: {error}")))?;
    if roots.is_empty() && !pem.is_empty() {
        return Err(TlsSetupError::new("extra roots hold no certificate"));
    }
    Ok(roots)
}

/// Accepts any certificate, and still wants proof that the server holds its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

const H2: &[u8] = b"h2";
