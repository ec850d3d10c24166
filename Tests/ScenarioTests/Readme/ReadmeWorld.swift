// A network and a file system of a reader's own, in which the lines of the README run by themselves.

import Foundation
import TestSupport

/// Who reads the README.
struct Reader: CustomStringConvertible {
    let user: UInt32
    /// Whether XDG_RUNTIME_DIR is set, as it is where systemd has logged the user in.
    let hasRuntimeFolder: Bool

    var description: String {
        "\(user == 0 ? "root" : "nobody") \(hasRuntimeFolder ? "with" : "without") XDG_RUNTIME_DIR"
    }

    static let all = [(0, true), (0, false), (65534, true), (65534, false)].map {
        Reader(user: UInt32($0.0), hasRuntimeFolder: $0.1)
    }
}

/// What one step came to.
struct StepResult {
    var output: String
    /// Of its last command; nil where it did not come to an end.
    var code: Int32?
}

/// A shell that runs steps one after the other, with origins that have the names of the README.
final class ReadmeWorld: Sendable {
    private static let namespaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    /// Only root may make namespaces, and not in every container.
    static let isPossible: Bool = {
        guard geteuid() == 0 else { return false }
        let arguments = namespaces + ["ip", "link", "set", "lo", "up"]
        return (try? Shell.run("unshare", arguments).succeeded) ?? false
    }()

    /// Where the reader sees ``folder``: /tmp is the reader's own.
    private static let inside = "/run/readme"

    private let folder: TemporaryFolder
    private let child: ChildProcess

    /// Begins to run.
    ///
    /// - Parameter script: for `sh`; it has the functions of ``functions``.
    init(_ reader: Reader, script: String) throws {
        folder = try TemporaryFolder("readme")
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..").standardized.path
        try Self.makeFiles(root, script, in: folder)
        try folder.write("world.sh", Self.world(folder.path, try Daemon.binary(), reader))
        child = try ChildProcess(
            "unshare",
            Self.namespaces + ["bash", "-e", folder.file("world.sh")],
            environment: Shell.cleanEnvironment(),
            output: folder.file("output"),
            errors: folder.file("errors")
        )
    }

    /// Waits for the end, at most ten minutes, and says what each step came to, by its name.
    func results() -> (steps: [String: StepResult], report: String) {
        let end = child.waitForEnd(seconds: 600)
        if end == nil {
            child.signal(SIGKILL, group: true)
            _ = child.waitForEnd()
        }
        var steps: [String: StepResult] = [:]
        for part in folder.text("output").replacing("\r\n", with: "\n").components(separatedBy: "\n@@step ").dropFirst()
        {
            let (name, rest) = Self.split(part, "\n")
            let (output, code) = Self.split(rest, "\n@@code ")
            steps[name] = StepResult(output: output, code: Int32(code.prefix { $0.isNumber }))
        }
        return (steps, "\(end.map { "\($0)" } ?? "timed out")\n\(folder.text("errors").suffix(2000))")
    }

    private static func split(_ text: String, _ mark: String) -> (String, String) {
        guard let range = text.firstRange(of: mark) else { return (text, "") }
        return (String(text[..<range.lowerBound]), String(text[range.upperBound...]))
    }

    // MARK: - What is there

    private static func makeFiles(_ root: String, _ script: String, in folder: TemporaryFolder) throws {
        // nobody walks through it, too.
        try Shell.must("chmod", ["755", folder.path])
        for name in ["bin", "home", "nginx", "source/.ci"] { try folder.folder(name) }
        try folder.write("bin/drydock", "")
        try folder.write("reader.sh", functions + script + "\nend_daemon end\n")
        // A checkout that every user may read.
        try Shell.must("cp", ["-R", "\(root)/config", folder.file("source/config")])
        try Shell.must("cp", ["\(root)/.ci/run-demo", folder.file("source/.ci/run-demo")])
        try Shell.must("chmod", ["-R", "a+rX", folder.file("source")])
        try folder.write("home/try/user.json", "{ \"id\": 7 }\n")
        try folder.write(
            "hosts",
            """
            127.0.0.1 localhost
            ::1 localhost
            192.88.99.1 api.github.com
            192.88.99.2 api.example.com
            192.88.99.3 deb.debian.org

            """
        )
        _ = try TLSFiles(in: folder, hosts: ["api.github.com", "api.example.com"])
        try folder.write("nginx/nginx.conf", origins)
    }

    /// The addresses are in the network for 6to4 relays, which nobody uses any more (RFC 7526), so that forward
    /// mode takes them for public.
    private static func world(_ folder: String, _ binary: String, _ reader: Reader) -> String {
        let runtime = "/run/user/\(reader.user)"
        return """
            mount --make-rprivate /
            mount -t tmpfs -o mode=755 tmpfs /run
            mkdir \(inside)
            mount --bind '\(folder)' \(inside)
            mount --bind '\(binary)' \(inside)/bin/drydock
            mount -t tmpfs -o mode=1777 tmpfs /tmp
            mount --bind \(inside)/hosts /etc/hosts
            mount -t tmpfs -o mode=755 tmpfs /etc/ssl/certs
            cp \(inside)/tls/ca.pem /etc/ssl/certs/ca-certificates.crt
            chmod 644 /etc/ssl/certs/ca-certificates.crt
            if [ -d /etc/drydock ]; then mount -t tmpfs tmpfs /etc/drydock; fi
            ip link set lo up
            for number in 1 2 3; do ip address add 192.88.99.$number/32 dev lo; done
            mkdir -p \(runtime)
            chmod 700 \(runtime) '\(inside)/home'
            chown -R \(reader.user):\(reader.user) \(runtime) '\(inside)/home'
            /usr/sbin/nginx -p '\(inside)/nginx' -c '\(inside)/nginx/nginx.conf' -g 'daemon off;' &
            for attempt in {1..2400}; do
                if (: < /dev/tcp/192.88.99.3/80) 2> /dev/null; then break; fi
                sleep 0.05
            done
            setpriv --reuid \(reader.user) --regid \(reader.user) --clear-groups env -i \\
                PATH='\(inside)/bin:/usr/bin:/bin' HOME='\(inside)/home' LANG=C.UTF-8 \\
                \(reader.hasRuntimeFolder ? "XDG_RUNTIME_DIR=\(runtime)" : "") sh '\(inside)/reader.sh' 2>&1

            """
    }

    private static var origins: String {
        let secure = "ssl_certificate \(inside)/tls/server.pem; ssl_certificate_key \(inside)/tls/server.key;"
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
            "\($0)_temp_path \(inside)/nginx/\($0);"
        }
        return """
            user root;
            worker_processes 1;
            pid \(inside)/nginx/nginx.pid;
            error_log stderr warn;
            events { worker_connections 256; }
            http {
                \(temporary.joined(separator: " "))
                access_log off;
                default_type application/json;
                add_header Cache-Control "public, max-age=60";
                server {
                    listen 192.88.99.1:443 ssl;
                    \(secure)
                    location = /users/octocat { return 200 '{ "login": "octocat", "asked with": "$http_authorization" }'; }
                    location = /users/octocat/repos { return 200 '[]'; }
                    location / { return 404 '{ "message": "Not Found" }'; }
                }
                server {
                    listen 192.88.99.2:443 ssl;
                    \(secure)
                    location / { return 200 '{ "from": "api.example.com" }'; }
                }
                server {
                    listen 192.88.99.3:80;
                    location / { default_type text/plain; return 200 'Suite: stable'; }
                }
            }

            """
    }

    // MARK: - What a step needs

    /// - `step NAME` begins a step; `code` ends it with the exit code before it.
    /// - `listening` waits until the daemon in the background takes connections.
    /// - `end_daemon NAME` is Ctrl-C for that daemon, as a step of its own.
    private static var functions: String {
        """
        source='\(inside)/source'
        daemon=
        step() { printf '\\n@@step %s\\n' "$1"; }
        code() { printf '\\n@@code %s\\n' "$?"; }
        listening() {
            for attempt in $(seq 2400); do
                kill -0 "$daemon" || break
                if bash -c ': < /dev/tcp/127.0.0.1/8080' 2> /dev/null; then return 0; fi
                sleep 0.05
            done
            cat "$HOME/daemon.log"
            return 1
        }
        end_daemon() {
            [ -n "$daemon" ] || return 0
            step "$1"
            kill -INT "$daemon"
            wait "$daemon"
            code
            daemon=
        }
        cd "$HOME/try"

        """
    }
}
