//! Configuration files of gateways whose origin has `hold`.

use std::net::SocketAddr;

/// Returns a file whose origin `app` has these servers and fields.
pub fn held(servers: &[SocketAddr], fields: &str, rest: &str) -> String {
    let servers: Vec<String> = servers.iter().map(|to| format!("http://{to}")).collect();
    format!(
        "workers = 4\n\n[origins.app]\nservers = {servers:?}\n{fields}\n\n\
         [zones.key]\nkey = \"$arg_key\"\nrate = \"1000r/s\"\n\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n{rest}\n"
    )
}
