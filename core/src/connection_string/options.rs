//! The options by name, and what they hold.

use super::{ConnectionStringErrorKind as Kind, LoadBalancer, host};
use crate::{Endpoint, Secret};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Auth,
    ApiKey,
    SkipTlsValidation,
    LoadBalancer,
    SrvNameServer,
    CertificatePath,
    CertificatePassword,
    SkipCompatibilityCheck,
}

impl Name {
    /// All of them, in the order in which they are printed.
    pub(super) const ALL: [Self; 8] = [
        Self::Auth,
        Self::ApiKey,
        Self::SkipTlsValidation,
        Self::LoadBalancer,
        Self::SrvNameServer,
        Self::CertificatePath,
        Self::CertificatePassword,
        Self::SkipCompatibilityCheck,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::ApiKey => "apiKey",
            Self::SkipTlsValidation => "skipTlsValidation",
            Self::LoadBalancer => "loadBalancer",
            Self::SrvNameServer => "srvNameServer",
            Self::CertificatePath => "certificatePath",
            Self::CertificatePassword => "certificatePassword",
            Self::SkipCompatibilityCheck => "skipCompatibilityCheck",
        }
    }

    pub(super) fn find(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|name| name.as_str().eq_ignore_ascii_case(text))
    }

    /// The name that was probably meant: at most half of it differs.
    pub(super) fn nearest(text: &str) -> Option<Self> {
        if text.len() > LONGEST_TYPO {
            return None;
        }
        let text = text.to_ascii_lowercase();
        Self::ALL
            .into_iter()
            .map(|name| {
                let known = name.as_str().to_ascii_lowercase();
                (strsim::osa_distance(&known, &text), name)
            })
            .filter(|(distance, name)| distance * 2 <= name.as_str().len())
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, name)| name)
    }
}

#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct Options {
    /// `auth=none` was asked for; without it and without credentials the mode is the same.
    pub(super) no_authentication: bool,
    pub(super) api_key: Option<Secret>,
    pub(super) skip_tls_validation: Option<bool>,
    pub(super) load_balancer: Option<LoadBalancer>,
    pub(super) srv_name_server: Option<Endpoint>,
    pub(super) certificate_path: Option<String>,
    pub(super) certificate_password: Option<Secret>,
    pub(super) skip_compatibility_check: Option<bool>,
    pub(super) unknown: Vec<(String, Secret)>,
}

impl Options {
    /// Sets an option from its decoded value.
    pub(super) fn set(&mut self, name: Name, value: String) -> Result<(), Kind> {
        if value.is_empty() {
            return Err(Kind::MissingValue(name.as_str()));
        }
        match name {
            Name::Auth => {
                if !value.eq_ignore_ascii_case("none") {
                    return Err(Kind::InvalidAuth);
                }
                self.no_authentication = true;
            }
            Name::ApiKey => {
                let key = Secret::new(value);
                check_api_key(&key)?;
                self.api_key = Some(key);
            }
            Name::SkipTlsValidation => self.skip_tls_validation = Some(boolean(name, &value)?),
            Name::LoadBalancer => self.load_balancer = Some(load_balancer(&value)?),
            Name::SrvNameServer => {
                self.srv_name_server = Some(host::name_server(&value)?);
            }
            Name::CertificatePath => self.certificate_path = Some(value),
            Name::CertificatePassword => self.certificate_password = Some(Secret::new(value)),
            Name::SkipCompatibilityCheck => {
                self.skip_compatibility_check = Some(boolean(name, &value)?);
            }
        }
        Ok(())
    }
}

impl LoadBalancer {
    /// The name of the strategy in a connection string.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::LeastConnections => "least-connections",
            Self::RoundRobin => "round-robin",
            Self::Random => "random",
        }
    }
}

/// A key travels in a header.
pub(super) fn check_api_key(key: &Secret) -> Result<(), Kind> {
    if !key.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Kind::InvalidApiKey);
    }
    Ok(())
}

fn boolean(name: Name, value: &str) -> Result<bool, Kind> {
    if value.eq_ignore_ascii_case("true") {
        return Ok(true);
    }
    if value.eq_ignore_ascii_case("false") {
        return Ok(false);
    }
    Err(Kind::InvalidBoolean(name.as_str()))
}

fn load_balancer(value: &str) -> Result<LoadBalancer, Kind> {
    [
        LoadBalancer::LeastConnections,
        LoadBalancer::RoundRobin,
        LoadBalancer::Random,
    ]
    .into_iter()
    .find(|strategy| strategy.as_str() == value)
    .ok_or(Kind::InvalidLoadBalancer)
}

/// Bounds the time that the search for a typo takes.
const LONGEST_TYPO: usize = 64;
