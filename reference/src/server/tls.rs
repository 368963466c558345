//! The certificate of a server, fresh at each start.

use super::{ServerOptions, faults::Alpn};
use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};
use rustls::{
    RootCertStore, ServerConfig, SupportedProtocolVersion,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject as _},
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
    version::{TLS12, TLS13},
};
use std::{io, sync::Arc};
use tokio_rustls::TlsAcceptor;

/// Which versions of TLS a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsVersions {
    /// 1.2 and 1.3.
    #[default]
    Both,
    /// 1.2 alone.
    Tls12,
    /// 1.3 alone.
    Tls13,
}

impl TlsVersions {
    fn list(self) -> Vec<&'static SupportedProtocolVersion> {
        match self {
            Self::Both => vec![&TLS12, &TLS13],
            Self::Tls12 => vec![&TLS12],
            Self::Tls13 => vec![&TLS13],
        }
    }
}

#[derive(Clone)]
pub(super) struct Tls {
    config: ServerConfig,
}

impl Tls {
    /// A self-signed certificate for `localhost` as the options say, and its text as PEM.
    pub(super) fn new(options: &ServerOptions) -> io::Result<(Self, String)> {
        let names = options.names.as_slice();
        let mut params = CertificateParams::new(names).map_err(io::Error::other)?;
        params
            .distinguished_name
            .push(DnType::CommonName, "localhost");
        if options.expired {
            params.not_after = date_time_ymd(2020, 1, 1);
        }
        if options.not_yet_valid {
            params.not_before = date_time_ymd(3000, 1, 1);
        }
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let certificate = params.self_signed(&key).map_err(io::Error::other)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(ring::default_provider());
        let clients = clients(options.client_roots.as_deref(), &provider)?;
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&options.tls.list())
            .and_then(|builder| {
                builder
                    .with_client_cert_verifier(clients)
                    .with_single_cert(vec![certificate.der().clone()], key)
            })
            .map_err(io::Error::other)?;
        Ok((Self { config }, certificate.pem()))
    }

    pub(super) fn acceptor(&self, alpn: Alpn) -> TlsAcceptor {
        let mut config = self.config.clone();
        config.alpn_protocols = alpn.protocols();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// Who may come.
fn clients(
    roots: Option<&str>,
    provider: &Arc<CryptoProvider>,
) -> io::Result<Arc<dyn ClientCertVerifier>> {
    let Some(pem) = roots else {
        return Ok(WebPkiClientVerifier::no_client_auth());
    };
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        roots
            .add(root.map_err(io::Error::other)?)
            .map_err(io::Error::other)?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(io::Error::other)
}
