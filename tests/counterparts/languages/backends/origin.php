<?php
// An origin that tells what it reads. PHP runs this for each request: php -S ADDRESS origin.php

$text = fn($value) => is_array($value) ? (string) reset($value) : (string) $value;
foreach ([
    "method" => $_SERVER["REQUEST_METHOD"],
    "field" => $_SERVER["HTTP_X_API_KEY"] ?? "",
    "client" => $_SERVER["HTTP_X_FORWARDED_FOR"] ?? "",
    "host" => $_SERVER["HTTP_HOST"] ?? "",
    "cookie" => trim($text($_COOKIE["my_key"] ?? ""), " \""),
    "argument" => $text($_GET["my_key"] ?? ""),
] as $name => $value) {
    echo "$name=$value\n";
}
