// A real nginx on loopback that serves a folder, with the requests it counted in its log.

import Foundation

/// nginx with one worker, in a folder of its own; stopped when nobody holds it any more.
package final class NginxOrigin: Sendable {
    package let port: Int
    /// Where the files it serves lie.
    package let root: String
    /// The folder that holds `root`, and files beside it.
    package let folder: TemporaryFolder
    private let child: Monitor<ChildProcess?>
    private let syncs = Counter()
    private let isTLS: Bool

    /// - Parameters:
    ///   - location: directives inside `location /`, such as `add_header Cache-Control "max-age=60";`.
    ///   - server: directives inside `server`, such as further locations.
    ///   - tls: serves HTTPS with these files; `clientCertificates` then demands one of the same authority.
    package init(
        location: String = "",
        server: String = "",
        tls: TLSFiles? = nil,
        clientCertificates: Bool = false
    ) throws {
        folder = try TemporaryFolder("nginx")
        root = try folder.folder("root")
        port = try freePort()
        isTLS = tls != nil
        var secure = ""
        if let tls {
            secure = "ssl_certificate \(tls.certificate); ssl_certificate_key \(tls.key);"
            if clientCertificates { secure += " ssl_client_certificate \(tls.authority); ssl_verify_client on;" }
        }
        let text = NginxOrigin.configuration(folder.path, port, isTLS, secure, server, location)
        try folder.write("nginx.conf", text)
        child = Monitor(nil)
        try start()
    }

    deinit { child.read { $0 }?.signal(SIGKILL, group: true) }

    package var url: String { "\(isTLS ? "https" : "http")://127.0.0.1:\(port)" }
    package var authority: String { "127.0.0.1:\(port)" }

    /// Writes a file under `root`.
    package func write(_ name: String, _ bytes: [UInt8]) throws { try folder.write("root/\(name)", bytes) }
    package func write(_ name: String, _ text: String) throws { try folder.write("root/\(name)", text) }

    /// Starts it, on the same port as before, and waits until it accepts.
    package func start() throws {
        let process = try ChildProcess(
            "/usr/sbin/nginx",
            ["-p", folder.path, "-c", folder.file("nginx.conf"), "-g", "daemon off;"],
            environment: Shell.cleanEnvironment(),
            errors: folder.file("error.log")
        )
        child.update { $0 = process }
        try process.waitUntilListening(on: port, "nginx", errors: folder.file("error.log"))
    }

    /// Stops it; the port refuses from now on.
    package func stop() {
        let process = child.update { child in
            defer { child = nil }
            return child
        }
        process?.signal(SIGTERM, group: true)
        if process?.waitForEnd() == nil { process?.signal(SIGKILL, group: true) }
    }

    /// How many requests its log holds, of all or of those with this method and path.
    ///
    /// Asks nginx for a path that only this method uses, so that every answer before it has been logged.
    package func requests(method: String? = nil, path: String? = nil) throws -> Int {
        if !isTLS, child.read({ $0 != nil }) { try synchronise() }
        return log.count { (method == nil || $0.method == method) && (path == nil || $0.path == path) }
    }

    /// The lines of its log in order, without the ones that `requests` caused.
    package var log: [(method: String, path: String, status: Int)] {
        folder.text("access.log").split(separator: "\n").compactMap { line in
            let parts = line.split(separator: " ")
            guard parts.count == 3, !parts[1].hasPrefix("/.sync-") else { return nil }
            return (String(parts[0]), String(parts[1]), Int(parts[2]) ?? 0)
        }
    }

    private func synchronise() throws {
        syncs.add()
        let mark = "/.sync-\(syncs.value)"
        _ = try RawClient(port: port).exchange("GET", mark)
        let isWritten = blockUntil {
            let log = folder.text("access.log")
            return log.contains("\(mark) ") && log.hasSuffix("\n")
        }
        guard isWritten else { throw TestSupportError.timedOut("nginx does not write its log") }
    }

    private static func configuration(
        _ folder: String,
        _ port: Int,
        _ isTLS: Bool,
        _ secure: String,
        _ server: String,
        _ location: String
    ) -> String {
        """
        \(getuid() == 0 ? "user root;" : "")
        worker_processes 1;
        pid \(folder)/nginx.pid;
        error_log stderr warn;
        events { worker_connections 1024; }
        http {
            types {
                text/html html; application/json json; image/png png; text/plain txt; application/octet-stream bin;
            }
            default_type application/octet-stream;
            log_format counted '$request_method $request_uri $status';
            access_log \(folder)/access.log counted;
            client_body_temp_path \(folder)/body;
            proxy_temp_path \(folder)/proxy;
            fastcgi_temp_path \(folder)/fastcgi;
            uwsgi_temp_path \(folder)/uwsgi;
            scgi_temp_path \(folder)/scgi;
            sendfile on;
            server {
                listen 127.0.0.1:\(port)\(isTLS ? " ssl" : "");
                server_name localhost;
                root \(folder)/root;
                \(secure)
                \(server)
                location / { \(location) }
            }
        }

        """
    }
}
