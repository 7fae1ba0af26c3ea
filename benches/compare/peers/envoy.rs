//! envoy's configuration for the comparison.

use super::{Plan, Written};

/// Writes the local rate limit filter, with one bucket for all requests of a route.
pub fn plan(plan: &Plan) -> Written {
    let Plan {
        address,
        origin,
        setup,
    } = plan;
    let bucket = |name: &str, tokens: u32, interval: &str| {
        format!(
            r#"{{ "@type": {LIMIT}, stat_prefix: {name},
        token_bucket: {{ max_tokens: {tokens}, tokens_per_fill: {tokens}, fill_interval: {interval} }},
        filter_enabled: {{ default_value: {{ numerator: 100 }} }},
        filter_enforced: {{ default_value: {{ numerator: 100 }} }} }}"#
        )
    };
    let (shut, pass) = (
        bucket("shut", 1, "60s"),
        bucket("pass", 1_000_000_000, "1s"),
    );
    let text = format!(
        r#"
static_resources:
  listeners:
  - address: {{ socket_address: {{ address: {ip}, port_value: {port} }} }}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": {MANAGER}
          stat_prefix: clients
          use_remote_address: true
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {{ prefix: "/shut" }}
                route: {{ cluster: origin }}
                typed_per_filter_config: {{ envoy.filters.http.local_ratelimit: {shut} }}
              - match: {{ prefix: "/" }}
                route: {{ cluster: origin }}
          http_filters:
          - name: envoy.filters.http.local_ratelimit
            typed_config: {pass}
          - name: envoy.filters.http.router
            typed_config: {{ "@type": {ROUTER} }}
  clusters:
  - name: origin
    type: STATIC
    circuit_breakers: {{ thresholds: [{{ max_connections: 10000, max_pending_requests: 10000, max_requests: 10000 }}] }}
    load_assignment:
      cluster_name: origin
      endpoints: [{{ lb_endpoints: [{{ endpoint: {{ address: {{
        socket_address: {{ address: {origin_ip}, port_value: {origin_port} }} }} }} }}] }}]
"#,
        ip = address.ip(),
        port = address.port(),
        origin_ip = origin.ip(),
        origin_port = origin.port(),
    );
    let workers = setup.workers.to_string();
    Written::new(
        Some(("envoy.yaml", text)),
        [
            "-c",
            "envoy.yaml",
            "--concurrency",
            &workers,
            "-l",
            "error",
            "--disable-hot-restart",
        ],
    )
}

const LIMIT: &str =
    "type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit";
const ROUTER: &str = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";
const MANAGER: &str = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
