//! The daemon from start to exit: recovery, signals, shutdown in order.

use crate::config::Settings;
use crate::engine::Engine;
use crate::metrics::{self, Metrics};
use crate::pulse::Phase;
use crate::service::{Reporter, notify};
use crate::{http, scheduler};
use sd_notify::NotifyState;
use std::sync::Arc;
use std::time::Duration;
use superko_storage::{Store, StoreError};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// How long open HTTP requests may take to end at shutdown.
const HTTP_DEADLINE: Duration = Duration::from_secs(5);

/// Why the daemon did not start or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The user can put it right; nothing was touched.
    #[error("{0}")]
    BadInput(String),
    /// Anything else.
    #[error("{0}")]
    Fault(String),
}

fn fault(what: &'static str) -> impl Fn(&dyn std::fmt::Display) -> ServeError {
    move |error| ServeError::Fault(format!("{what}: {error}"))
}

/// Runs the daemon until SIGTERM or SIGINT.
pub fn serve(settings: Settings) -> Result<(), ServeError> {
    metrics::count_panics();
    // The port first: an address in use is found before the data directory is touched.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(|error| fault("tokio")(&error))?;
    let listener = runtime.block_on(TcpListener::bind(settings.listen)).map_err(|error| {
        ServeError::BadInput(format!("listen {}: {error}: stop what uses the port, or choose another with --listen", settings.listen))
    })?;
    let address = listener.local_addr().map_err(|error| fault("listen")(&error))?;
    let dir = settings.data_dir.display();
    let store = Store::open(&settings.data_dir).map_err(|error| match error {
        // The error names the directory and the process that holds it.
        error @ StoreError::Locked { .. } => ServeError::BadInput(error.to_string()),
        error => ServeError::Fault(format!("data_dir {dir}: {error}")),
    })?;
    crate::proofs::remove_parts(&settings.data_dir);
    crate::backup::remove_parts(&settings.data_dir);
    store.keep_free(settings.min_free_bytes);
    let store = Arc::new(store);
    let metrics = Metrics::new().map_err(|error| fault("metrics")(&error))?;
    let engine = Engine::new(store.clone(), metrics, &settings);
    let engine = Arc::new(engine.map_err(|error| fault("jobs")(&error))?);
    let reporter = Reporter::start(engine.clone()).map_err(|error| fault("reporter thread")(&error))?;
    let solver = scheduler::spawn_solver(engine.clone()).map_err(|error| fault("solver thread")(&error))?;
    let checkpoints =
        scheduler::spawn_checkpoints(engine.clone(), settings.checkpoint_interval).map_err(|error| fault("checkpoint thread")(&error))?;
    let monitor = scheduler::spawn_monitor(engine.clone(), settings.turn).map_err(|error| fault("monitor thread")(&error))?;

    let served = runtime.block_on(run(engine.clone(), listener, &settings, async move {
        tokio::task::spawn_blocking(move || (solver.join().is_ok(), checkpoints.join().is_ok(), monitor.join().is_ok())).await
    }));
    tracing::info!(%address, "the HTTP server has stopped");
    // Ends lingering handlers, so that nothing else uses the store.
    runtime.shutdown_timeout(HTTP_DEADLINE);
    engine.close_table();
    drop(reporter);
    drop(engine);
    match Arc::try_unwrap(store) {
        Ok(store) => close(store)?,
        Err(_) => tracing::warn!("the store is still in use; all acknowledged state is on disk"),
    }
    served?;
    tracing::info!("stopped");
    Ok(())
}

fn close(store: Store) -> Result<(), ServeError> {
    store.close().map_err(|error| fault("closing the store")(&error))
}

/// The async part: serves until a signal, then winds down in order. `threads` ends when solver and checkpoint threads have.
async fn run<T>(
    engine: Arc<Engine>,
    listener: TcpListener,
    settings: &Settings,
    threads: impl Future<Output = T>,
) -> Result<(), ServeError> {
    let watch_for = |kind| signal(kind).map_err(|error| fault("signals")(&error));
    let mut stop = Stop { term: watch_for(SignalKind::terminate())?, int: watch_for(SignalKind::interrupt())? };
    let mut on_demand = watch_for(SignalKind::user_defined1())?;
    let mut hangup = watch_for(SignalKind::hangup())?;
    let address = listener.local_addr().map_err(|error| fault("listen")(&error))?;
    let (close_http, mut closing) = watch::channel(false);
    let (router, served) = (http::router(engine.clone(), settings), settings.clone());
    let mut server = tokio::spawn(async move {
        http::serve(listener, router, &served, async move {
            // An error means that the sender is gone, which also ends the server.
            let _ = closing.changed().await;
        })
        .await;
    });
    tracing::info!(%address, data = %engine.data_dir.display(), "listening");

    let mut failure = None;
    let mut announced = false;
    let mut tick = tokio::time::interval(Duration::from_millis(50));
    let mut health = tokio::time::interval(Duration::from_millis(500));
    loop {
        tokio::select! {
            () = stop.received() => break,
            _ = on_demand.recv() => {
                let engine = engine.clone();
                // Its failure is logged and shows in /readyz.
                drop(tokio::task::spawn_blocking(move || engine.checkpoint()));
            }
            _ = hangup.recv() => match settings.access.tokens.reload() {
                Ok(tokens) => tracing::info!(tokens, "SIGHUP: the access tokens were read again"),
                Err(error) => tracing::error!(error, "SIGHUP: the access tokens could not be read; those from before go on counting"),
            },
            _ = tick.tick(), if !announced => {
                if engine.is_recovered() {
                    announced = true;
                    tracing::info!("ready");
                    notify(NotifyState::Ready);
                }
            }
            _ = health.tick() => {
                engine.pulse.server();
                failure = engine.gave_up();
                if let Some(error) = &failure {
                    tracing::error!(error);
                    break;
                }
            }
            ended = &mut server => {
                engine.stop();
                threads.await;
                return Err(ServeError::Fault(format!("the HTTP server ended by itself: {ended:?}")));
            }
        }
    }

    tracing::info!("stopping: no new jobs, the search goes to its next safe point");
    notify(NotifyState::Stopping);
    engine.stop();
    let wind_down = async {
        threads.await;
        engine.pulse.enter(Phase::Closing);
        if engine.is_hurrying() {
            return Ok(None);
        }
        let engine = engine.clone();
        tokio::task::spawn_blocking(move || if engine.has_unsaved() { engine.checkpoint() } else { Ok(None) })
            .await
            .unwrap_or_else(|error| Err(error.to_string()))
    };
    let mut wind_down = std::pin::pin!(wind_down);
    let saved = loop {
        tokio::select! {
            saved = &mut wind_down => break saved,
            () = stop.received() => {
                tracing::warn!("second signal: a checkpoint that has not begun is left out");
                engine.hurry();
            }
        }
    };
    if let Err(error) = &saved {
        tracing::error!(error, "the last checkpoint failed; the one before it counts");
    }
    // The receiver lives in the server task; if that is gone there is nothing to close.
    let _ = close_http.send(true);
    let deadline = if engine.is_hurrying() { Duration::from_millis(200) } else { HTTP_DEADLINE };
    if tokio::time::timeout(deadline, &mut server).await.is_err() {
        server.abort();
        tracing::warn!("some HTTP connections were cut");
    }
    failure.map_or(Ok(()), |error| Err(ServeError::Fault(error)))
}

struct Stop {
    term: Signal,
    int: Signal,
}

impl Stop {
    async fn received(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}
