use futures_util::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, RedisResult, Value};

#[cfg(test)]
use super::simulated;
use super::url::{Place, Url};

/// A connection to one server, or to all nodes of a cluster.
#[derive(Clone)]
pub(super) enum RedisConnection {
    Server(MultiplexedConnection),
    Cluster(ClusterConnection),
    #[cfg(test)]
    Simulated(simulated::Connection),
}

impl RedisConnection {
    /// Connects. Has no timeout: the caller must set one.
    pub(super) async fn open(url: &Url) -> RedisResult<Self> {
        #[cfg(test)]
        if let Some(dialed) = simulated::dial(url) {
            return Ok(Self::Simulated(dialed.await?));
        }
        match &url.place {
            Place::Server(url) => {
                let config = AsyncConnectionConfig::new()
                    .set_connection_timeout(None)
                    .set_response_timeout(None);
                let client = Client::open(url.as_str())?;
                let opened = client.get_multiplexed_async_connection_with_config(&config);
                Ok(Self::Server(opened.await?))
            }
            Place::Cluster(nodes) => {
                let client = ClusterClient::new(nodes.iter().map(String::as_str))?;
                Ok(Self::Cluster(client.get_async_connection().await?))
            }
        }
    }

    /// Sends all commands at once. Returns a reply or an error for each.
    ///
    /// Commands for a single server go in one write. In a cluster each command goes to its own
    /// node.
    pub(super) async fn send(&self, commands: Vec<Cmd>) -> RedisResult<Vec<RedisResult<Value>>> {
        match self {
            Self::Server(connection) => {
                let mut pipeline = Pipeline::with_capacity(commands.len());
                pipeline.ignore_errors();
                for command in commands {
                    pipeline.add_command(command);
                }
                pipeline.query_async(&mut connection.clone()).await
            }
            Self::Cluster(connection) => {
                let replies = commands.into_iter().map(|command| {
                    let mut connection = connection.clone();
                    async move { command.query_async(&mut connection).await }
                });
                Ok(join_all(replies).await)
            }
            #[cfg(test)]
            Self::Simulated(connection) => connection.send(commands).await,
        }
    }
}
