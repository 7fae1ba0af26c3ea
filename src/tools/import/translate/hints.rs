//! Notes on directives that are not translated, and what to do about them.

use super::protection::error_status;
use crate::tools::import::notes::Notes;
use crate::tools::import::tree::Directive;

/// Directives that other modules read.
const HANDLED: [&str; 8] = [
    "access_by_lua access_by_lua_block access_by_lua_file allow deny internal limit_except satisfy",
    "auth_basic auth_digest auth_gss auth_jwt auth_ldap auth_pam auth_request",
    "include http server location upstream events zone listen server_name try_files",
    "limit_req_zone limit_req limit_req_status limit_req_dry_run",
    "limit_conn_zone limit_conn limit_conn_status limit_conn_dry_run",
    "proxy_pass proxy_set_header proxy_connect_timeout proxy_read_timeout \
     grpc_pass grpc_set_header grpc_connect_timeout grpc_read_timeout \
     proxy_next_upstream grpc_next_upstream \
     proxy_ssl_verify proxy_ssl_trusted_certificate proxy_ssl_certificate \
     proxy_ssl_certificate_key proxy_ssl_name proxy_ssl_server_name \
     grpc_ssl_verify grpc_ssl_trusted_certificate grpc_ssl_certificate \
     grpc_ssl_certificate_key grpc_ssl_name grpc_ssl_server_name \
     add_header error_page proxy_intercept_errors grpc_intercept_errors recursive_error_pages",
    "ssl_certificate ssl_certificate_key set_real_ip_from real_ip_header real_ip_recursive",
    "client_max_body_size client_header_timeout client_body_timeout underscores_in_headers \
     keepalive_timeout keepalive least_conn hash ip_hash keepalive_requests keepalive_time",
];

/// Directives about nginx's own process, or about things that drip does by itself.
///
/// They can be dropped.
const IMMATERIAL: [&str; 7] = [
    "user worker_processes worker_connections worker_rlimit_nofile worker_cpu_affinity \
     worker_shutdown_timeout pid daemon master_process load_module pcre_jit thread_pool \
     multi_accept use resolver",
    "error_log access_log log_format log_not_found limit_req_log_level limit_conn_log_level",
    "sendfile sendfile_max_chunk aio directio tcp_nopush tcp_nodelay",
    "types types_hash_max_size types_hash_bucket_size default_type charset index root server_tokens",
    "server_names_hash_bucket_size server_names_hash_max_size variables_hash_max_size \
     map_hash_bucket_size map_hash_max_size proxy_headers_hash_max_size \
     proxy_headers_hash_bucket_size",
    "proxy_http_version proxy_buffering proxy_buffers proxy_buffer_size proxy_busy_buffers_size",
    "proxy_temp_path client_body_temp_path fastcgi_temp_path uwsgi_temp_path scgi_temp_path",
];

/// Directives, and what drip has instead.
const HINTS: [(&str, &str); 13] = [
    (
        "geo",
        "drip does not know its variables; exempt = [...] of a zone exempts networks",
    ),
    ("map", "drip does not know its variables"),
    (
        "if",
        "its conditions are not translated, and its contents are left out",
    ),
    ("return", "drip sends no fixed responses"),
    ("rewrite", "drip has strip_prefix and add_prefix on a route"),
    ("gzip", "drip does not compress"),
    (
        "proxy_cache",
        "drip shares answers in memory: collapse of a route",
    ),
    (
        "proxy_ignore_client_abort",
        "drip has on_client_gone = \"finish\" on an origin",
    ),
    ("proxy_redirect", "responses pass unchanged"),
    ("ssl_protocols", "drip speaks TLS 1.2 and 1.3"),
    ("ssl_ciphers", "drip chooses the ciphers itself"),
    (
        "random",
        "drip picks the server with the fewest requests in flight",
    ),
    ("stream mail", "drip speaks only HTTP"),
];

/// Whether a directive is handled, or can be dropped.
fn is_known(name: &str) -> bool {
    let mut lists_of_names = HANDLED.iter().chain(&IMMATERIAL);
    lists_of_names.any(|names| lists(names, name))
}

/// Whether a list of names has this one.
fn lists(names: &str, name: &str) -> bool {
    names.split_ascii_whitespace().any(|known| known == name)
}

/// Adds notes on the directives of a block that no module reads.
pub(super) fn unhandled<'t>(block: impl IntoIterator<Item = &'t Directive>, notes: &mut Notes) {
    for directive in block {
        let name = &*directive.name;
        if name == "return" && error_status(directive).is_some() {
            // It refuses the requests of its locations.
        } else if is_known(name) || name.is_empty() {
            // Others read it, or nobody needs to.
        } else if let Some((_, hint)) = HINTS.iter().find(|(names, _)| lists(names, name)) {
            notes.add(directive.place, format!("{name} is not translated: {hint}"));
        } else {
            notes.add(directive.place, format!("{name} is not translated"));
        }
    }
}
