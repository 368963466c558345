//! The certificate of a server, fresh at each start.

use super::faults::Alpn;
use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use std::{io, sync::Arc};
use tokio_rustls::TlsAcceptor;

#[derive(Clone)]
pub(super) struct Tls {
    config: ServerConfig,
}

impl Tls {
    /// A self-signed certificate for `localhost` with these names, and its text as PEM.
    pub(super) fn new(names: &[String], expired: bool) -> io::Result<(Self, String)> {
        let mut params = CertificateParams::new(names).map_err(io::Error::other)?;
        params
            .distinguished_name
            .push(DnType::CommonName, "localhost");
        if expired {
            params.not_after = date_time_ymd(2020, 1, 1);
        }
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let certificate = params.self_signed(&key).map_err(io::Error::other)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .and_then(|builder| {
                    builder
                        .with_no_client_auth()
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
