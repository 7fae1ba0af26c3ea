//! Connection to a Redis server, or to the nodes of a cluster.
//!
//! `client` sends commands over it. `bounded_connection` has the connection to one server.

use config::redis::{Servers, Url};
use config::tls::Authorities;
use futures_util::future::join_all;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{AsyncConnectionConfig, Cmd, IntoConnectionInfo, Pipeline, RedisResult, Value};

use super::bounded_connection::{BoundedConnection, NODE_CONNECT_TIMEOUT, trust_nodes};
#[cfg(test)]
use super::simulated;
use super::unanswered_key::UnansweredKey;

/// Connection to one server, or to all nodes of a cluster.
#[derive(Clone)]
pub(super) enum RedisConnection {
    Server(BoundedConnection),
    Cluster(ClusterConnection<BoundedConnection>),
    #[cfg(test)]
    Simulated(simulated::Connection),
}

impl RedisConnection {
    /// Connects. Has no timeout as a whole: the caller must set one.
    ///
    /// In a cluster, the connection to each node has a timeout of its own.
    pub(super) async fn open(url: &Url, authorities: Option<&Authorities>) -> RedisResult<Self> {
        #[cfg(test)]
        if let Some(dialed) = simulated::dial(url) {
            return Ok(Self::Simulated(dialed.await?));
        }
        match &url.servers {
            Servers::Server(url) => {
                let config = AsyncConnectionConfig::new()
                    .set_connection_timeout(None)
                    .set_response_timeout(None);
                let info = url.as_str().into_connection_info()?;
                let connection = BoundedConnection::open(&info, config, authorities).await?;
                Ok(Self::Server(connection))
            }
            Servers::Cluster(nodes) => {
                // The cluster client takes no authorities, and connects to nodes by itself. So they
                // are set for this thread.
                trust_nodes(authorities);
                let client = ClusterClient::builder(nodes.iter().map(String::as_str))
                    .connection_timeout(NODE_CONNECT_TIMEOUT)
                    .build()?;
                Ok(Self::Cluster(client.get_async_generic_connection().await?))
            }
        }
    }

    /// Sends all commands at once. Returns a reply or an error for each.
    ///
    /// Commands for a single server go in one write. In a cluster each command goes to its own
    /// node, and `unanswered` notes a key whose node failed.
    pub(super) async fn send(
        &self,
        commands: Vec<Cmd>,
        unanswered: &UnansweredKey,
    ) -> RedisResult<Vec<RedisResult<Value>>> {
        match self {
            Self::Server(connection) => {
                let mut pipeline = Pipeline::with_capacity(commands.len());
                pipeline.ignore_errors();
                for command in commands {
                    pipeline.add_command(command);
                }
                connection.send_all(&pipeline).await
            }
            Self::Cluster(connection) => {
                let replies = commands.iter().map(|command| {
                    let mut connection = connection.clone();
                    async move {
                        let mut in_flight = unanswered.watch(command);
                        let reply = command.query_async(&mut connection).await;
                        if reply.is_ok() {
                            in_flight.mark_answered();
                        }
                        reply
                    }
                });
                Ok(join_all(replies).await)
            }
            #[cfg(test)]
            Self::Simulated(connection) => connection.send(commands).await,
        }
    }
}
