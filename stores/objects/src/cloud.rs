//! The library's stores of each cloud.

use std::sync::Arc;
use std::time::Duration;

use object_store::{ClientOptions, RetryConfig};

use crate::attempts::RetriedBy;
use crate::client::{ObjectClient, OptionalInterfaces};
use crate::error::{ObjectError, Result};
use crate::options::ObjectOptions;
use crate::transport::TypedErrorConnector;

/// How long a connection may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

fn retries(options: &ObjectOptions, attempts: RetriedBy) -> RetryConfig {
    let limits = options.limits();
    let max_retries = match attempts {
        RetriedBy::Client => 0,
        RetriedBy::Library => limits.max_attempts.saturating_sub(1) as usize,
    };
    RetryConfig { max_retries, retry_timeout: limits.retry_timeout, ..RetryConfig::default() }
}

fn client_options(options: &ObjectOptions, allow_http: bool) -> ClientOptions {
    let limit = options.limits().attempt_timeout;
    ClientOptions::new().with_allow_http(allow_http).with_timeout(limit).with_connect_timeout(CONNECT_LIMIT.min(limit))
}

#[allow(dead_code, reason = "with some features")]
fn given(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn refused(name: &str) -> impl Fn(object_store::Error) -> ObjectError {
    let name = name.to_owned();
    move |error| ObjectError::of_library(&name, &error, 1)
}

#[cfg(feature = "aws")]
pub fn s3(bucket: &str, location_name: String, options: &ObjectOptions, retried_by: RetriedBy) -> Result<ObjectClient> {
    use object_store::aws::AmazonS3Builder;
    let allow_http = options.allow_http || environment_says_yes("AWS_ALLOW_HTTP");
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        .with_retry(retries(options, retried_by))
        .with_client_options(client_options(options, allow_http));
    if retried_by == RetriedBy::Client {
        builder = builder.with_http_connector(TypedErrorConnector::default());
    }
    if let Some(endpoint) = given(&options.endpoint) {
        builder = builder.with_endpoint(endpoint);
    }
    if let Some(region) = given(&options.region) {
        builder = builder.with_region(region);
    }
    if options.anonymous {
        builder = builder.with_skip_signature(true);
    }
    let store = Arc::new(builder.build().map_err(refused(&location_name))?);
    let interfaces = OptionalInterfaces::of_cloud(&store);
    Ok(ObjectClient::with_optional_interfaces(location_name, store, interfaces, options.limits()))
}

#[cfg(feature = "gcp")]
pub fn google(
    bucket: &str,
    location_name: String,
    options: &ObjectOptions,
    retried_by: RetriedBy,
) -> Result<ObjectClient> {
    use object_store::gcp::GoogleCloudStorageBuilder;
    let mut builder = GoogleCloudStorageBuilder::from_env()
        .with_bucket_name(bucket)
        .with_retry(retries(options, retried_by))
        .with_client_options(client_options(options, options.allow_http));
    if retried_by == RetriedBy::Client {
        builder = builder.with_http_connector(TypedErrorConnector::default());
    }
    if let Some(endpoint) = given(&options.endpoint) {
        builder = builder.with_base_url(endpoint);
    }
    if options.anonymous {
        builder = builder.with_skip_signature(true);
    }
    let store = Arc::new(builder.build().map_err(refused(&location_name))?);
    let interfaces = OptionalInterfaces::of_cloud(&store);
    Ok(ObjectClient::with_optional_interfaces(location_name, store, interfaces, options.limits()))
}

#[cfg(feature = "azure")]
pub fn azure(
    container: &str,
    location_name: String,
    options: &ObjectOptions,
    retried_by: RetriedBy,
) -> Result<ObjectClient> {
    use object_store::azure::MicrosoftAzureBuilder;
    let mut builder = MicrosoftAzureBuilder::from_env()
        .with_container_name(container)
        .with_retry(retries(options, retried_by))
        .with_client_options(client_options(options, options.allow_http));
    if retried_by == RetriedBy::Client {
        builder = builder.with_http_connector(TypedErrorConnector::default());
    }
    if let Some(endpoint) = given(&options.endpoint) {
        builder = builder.with_endpoint(endpoint.to_owned());
    }
    if options.anonymous {
        builder = builder.with_skip_signature(true);
    }
    let store = Arc::new(builder.build().map_err(refused(&location_name))?);
    let interfaces = OptionalInterfaces::of_cloud(&store);
    Ok(ObjectClient::with_optional_interfaces(location_name, store, interfaces, options.limits()))
}

#[cfg(feature = "http")]
pub fn web(url: &str, location_name: String, options: &ObjectOptions, retried_by: RetriedBy) -> Result<ObjectClient> {
    use object_store::http::HttpBuilder;
    // The scheme says whether it is encrypted.
    let mut builder = HttpBuilder::new()
        .with_url(url)
        .with_retry(retries(options, retried_by))
        .with_client_options(client_options(options, url.starts_with("http:")));
    if retried_by == RetriedBy::Client {
        builder = builder.with_http_connector(TypedErrorConnector::default());
    }
    let store = Arc::new(builder.build().map_err(refused(&location_name))?);
    Ok(ObjectClient::over(location_name, store, options.limits()))
}

#[cfg(feature = "aws")]
fn environment_says_yes(name: &str) -> bool {
    std::env::var(name).is_ok_and(|text| matches!(text.to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "on"))
}
