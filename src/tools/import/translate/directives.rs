//! Lists directives that other modules read or that can be ignored.

use crate::import::tree::Directive;

/// Directives that other modules read, as lists of words.
const READ: [&str; 6] = [
    "access_by_lua access_by_lua_block access_by_lua_file allow deny internal satisfy \
     auth_basic auth_digest auth_gss auth_jwt auth_ldap auth_pam auth_request limit_except",
    "include http server location upstream events zone listen server_name try_files",
    "limit_req_zone limit_req limit_req_status limit_req_dry_run \
     limit_conn_zone limit_conn limit_conn_status limit_conn_dry_run",
    "proxy_pass proxy_set_header proxy_connect_timeout proxy_read_timeout add_header",
    "ssl_certificate ssl_certificate_key set_real_ip_from real_ip_header real_ip_recursive",
    "client_max_body_size client_header_timeout client_body_timeout \
     keepalive_timeout keepalive least_conn ip_hash",
];

/// Directives that can be ignored, as lists of words.
///
/// They concern nginx's own process, or something that drip always does.
const IGNORED: [&str; 7] = [
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

/// Adds a note for each directive of a block that is neither read nor ignored.
pub(super) fn note_unknown<'t, 'n: 't>(block: impl IntoIterator<Item = &'t Directive<'n>>) {
    for directive in block {
        let name = &*directive.name;
        let mut lists = READ.iter().chain(&IGNORED);
        let is_known = lists.any(|names| names.split_ascii_whitespace().any(|it| it == name));
        // `protection` reads these.
        let refuses = name == "return" && error_status(directive).is_some();
        if !is_known && !refuses && !name.is_empty() {
            directive.at.note(format!("{name} is not translated"));
        }
    }
}

/// Returns the error status of a `return`; `None` if it answers without an error.
pub(super) fn error_status(directive: &Directive) -> Option<u16> {
    let status = directive.args.first()?.parse().ok()?;
    match status {
        // 444 closes the connection without a response. drip has no such status.
        444 => Some(403),
        400..=599 => Some(status),
        _ => None,
    }
}
