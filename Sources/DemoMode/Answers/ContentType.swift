// The media type of an answer file, from the extension of its name.

/// The media type for the extension of the last path component, compared without case; `application/octet-stream`
/// when there is none or it is not known.
package func mediaType(forPath path: String) -> String {
    let name = path.lastIndex(of: "/").map { path[path.index(after: $0)...] } ?? path[...]
    guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return "application/octet-stream" }
    return mediaTypes[name[name.index(after: dot)...].lowercased()] ?? "application/octet-stream"
}

private let mediaTypes: [String: String] = [
    "avif": "image/avif",
    "bin": "application/octet-stream",
    "bmp": "image/bmp",
    "css": "text/css; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "gif": "image/gif",
    "gz": "application/gzip",
    "heic": "image/heic",
    "htm": "text/html; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "ico": "image/vnd.microsoft.icon",
    "ics": "text/calendar; charset=utf-8",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "map": "application/json",
    "md": "text/markdown; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
    "mov": "video/quicktime",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "ndjson": "application/x-ndjson",
    "ogg": "audio/ogg",
    "otf": "font/otf",
    "pdf": "application/pdf",
    "plist": "application/x-plist",
    "png": "image/png",
    "svg": "image/svg+xml",
    "tar": "application/x-tar",
    "ttf": "font/ttf",
    "txt": "text/plain; charset=utf-8",
    "wasm": "application/wasm",
    "wav": "audio/wav",
    "webm": "video/webm",
    "webmanifest": "application/manifest+json",
    "webp": "image/webp",
    "woff": "font/woff",
    "woff2": "font/woff2",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "zip": "application/zip",
]
