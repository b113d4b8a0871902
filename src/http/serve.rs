//! Accepts connections: not too many, and none that never says what it wants.

use super::access::Peer;
use crate::config::Settings;
use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::io::ErrorKind;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower_service::Service;

/// Serves until `closing`, then lets open requests end. Past `max_connections` new connections wait until one is free.
pub async fn serve(listener: TcpListener, router: Router, settings: &Settings, closing: impl Future<Output = ()>) {
    let places = Arc::new(Semaphore::new(settings.max_connections));
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    // Also the time that a connection may be idle between two requests.
    http.timer(TokioTimer::new()).header_read_timeout(settings.request_timeout);
    let mut closing = pin!(closing);
    loop {
        let next = async {
            let place = places.clone().acquire_owned().await;
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            next = next => next,
            () = &mut closing => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            // The client has thought better of it.
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) => continue,
            Err(error) => {
                tracing::error!(%error, "a connection could not be accepted");
                // Too many open files, most likely: some close meanwhile.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        // Without it small events wait for the client's acknowledgement of the one before.
        let _ = stream.set_nodelay(true);
        let router = router.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer(peer));
            router.clone().call(request)
        });
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%peer, %error, "a connection ended early");
            }
            drop(place);
        });
    }
    drop(listener);
    graceful.shutdown().await;
}
