//! HTTP as the cloud's clients use it, with answers that say "not now" as errors of a type.

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};

use crate::server_text::xml_error_or_text;

/// Most bytes of the body of a failure that are looked at.
const MAX_FAILURE_BYTES: usize = 16 << 10;

/// A server has answered that it could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[error("the server answers {status}{}", text_of(body))]
pub struct HttpErrorResponse {
    status: u16,
    body: String,
}

fn text_of(body: &str) -> String {
    let text = xml_error_or_text(body);
    // A page for people says nothing more than the status does.
    match text.is_empty() || text.contains('<') {
        true => String::new(),
        false => format!(" ({})", text.chars().take(300).collect::<String>()),
    }
}

impl HttpErrorResponse {
    /// Whether the server does not know such requests.
    pub fn is_not_implemented(&self) -> bool {
        self.status == 501
    }

    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        self.status >= 500 && self.status != 501 || matches!(self.status, 408 | 429) || self.body.contains("SlowDown")
    }
}

/// Connects as the library does, and tells answers apart.
#[derive(Debug, Default)]
pub struct TypedErrorConnector(ReqwestConnector);

impl HttpConnector for TypedErrorConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(AnswerService(self.0.connect(options)?)))
    }
}

#[derive(Debug)]
struct AnswerService(HttpClient);

#[async_trait]
impl HttpService for AnswerService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = self.0.execute(request).await?;
        let status = response.status().as_u16();
        // These have a meaning of their own in the library.
        if status < 400 || matches!(status, 401 | 403 | 404 | 405 | 409 | 412) {
            return Ok(response);
        }
        let body = response.into_body().bytes().await.unwrap_or_default();
        let body = String::from_utf8_lossy(&body[..body.len().min(MAX_FAILURE_BYTES)]).into_owned();
        Err(HttpError::new(HttpErrorKind::Unknown, HttpErrorResponse { status, body }))
    }
}
