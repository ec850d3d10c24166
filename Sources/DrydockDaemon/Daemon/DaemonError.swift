// The errors with which a daemon does not start or reload, with advice for each.

import Configuration
import DiskStore
import EventLoop
import Files
import Glibc
import ProxyServer

/// A failure of the daemon as a whole.
package enum DaemonError: Error, Sendable, CustomStringConvertible {
    /// The configuration has errors; the text has one line for each, with file, line and column.
    case configuration(String)
    /// A socket, a folder or a thread could not be made.
    case start(String)
    /// The reload changes something that needs a restart.
    case needsRestart(String)

    package var description: String {
        switch self {
        case .configuration(let text), .start(let text), .needsRestart(let text): text
        }
    }
}

/// Advice for errors of the system. It looks at the file system and at the users of the machine, which may block: not
/// on a loop.
enum Remedies {
    // MARK: - Addresses

    /// The error text for an address that cannot be bound, with advice.
    /// - Parameters:
    ///   - key: the configuration key, or the variable, that names the address.
    ///   - group: the group that is to own unix sockets; nil for the daemon's own.
    static func listening(_ error: SystemError, _ address: ListenAddress, key: String, group: String?) -> String {
        switch address {
        case .tcp(_, let port): return "\(error); \(Self.port(port, error.code, key))"
        case .unix(let path):
            guard let group else { return "\(error); \(socket(path, error.code, key))" }
            if ListeningSet.identifier(ofGroup: group) == nil {
                return "'\(key).group' is '\(group)', and this machine has no such group; "
                    + "make it with 'groupadd --system \(group)', or name another one"
            }
            let isOfGroup = error.code == EPERM && error.operation.hasPrefix("give ")
            let member =
                "\(user) is not in that group; 'usermod -aG \(group) \(user)' adds it, or leave out '\(key).group'"
            return "\(error); \(isOfGroup ? member : socket(path, error.code, key))"
        }
    }

    private static func port(_ port: UInt16, _ code: Int32, _ key: String) -> String {
        switch code {
        case EADDRINUSE:
            "another program listens there: 'ss -ltnp' shows which; end it, or take another port in '\(key)'"
        case EACCES where port < 1024, EPERM where port < 1024:
            "ports below 1024 need CAP_NET_BIND_SERVICE, which \(user) does not have: write CapabilityBoundingSet=CAP_NET_BIND_SERVICE, AmbientCapabilities=CAP_NET_BIND_SERVICE and PrivateUsers=no into the systemd unit, or take a port above 1023 in '\(key)'"
        case EACCES, EPERM: "\(user) may not listen there; take another port in '\(key)'"
        case EADDRNOTAVAIL: "this machine has no such address: 'ip address' shows those that it has; correct '\(key)'"
        case EAFNOSUPPORT: "this machine has no addresses of that kind; correct '\(key)'"
        default: "correct '\(key)'"
        }
    }

    private static func socket(_ path: String, _ code: Int32, _ key: String) -> String {
        switch code {
        case EADDRINUSE: "another daemon listens there; end it, or name another path in '\(key)'"
        case ENAMETOOLONG: "the path of a socket has at most 107 bytes; name a shorter one in '\(key)'"
        default: advice(Ancestors.parent(of: path), code, key)
        }
    }

    // MARK: - Folders and files

    static func cacheFolder(_ error: SystemError, _ path: String) -> String {
        let isWhole = FolderState(path).map { $0.path != path || $0.owner != geteuid() } ?? true
        let advice: String =
            switch error.code {
            case EACCES where !isWhole, EPERM where !isWhole:
                "something in it belongs to another user, and the daemon runs as \(user): 'chown -R \(user) \(path)' gives it all"
            case EACCES, EPERM, EROFS, ENOTDIR, ENOENT: advice(path, error.code, "cache.disk.path")
            default: error.advice
            }
        return "the cache folder \(path) cannot be used: \(error); \(advice)"
    }

    static func accessLog(_ error: SystemError, _ access: LogConfiguration.Access) -> String {
        guard case .file(let path) = access else { return "log.access: \(error)" }
        if let file = FolderState(path), file.path == path, file.kind == S_IFREG, error.code == EACCES {
            let advice = "it belongs to \(file.ownerName), and the daemon runs as \(user)"
            return "log.access: \(error); \(advice): 'chown \(user) \(path)' gives it the file, or name another one"
        }
        return "log.access: \(error); \(advice(Ancestors.parent(of: path), error.code, "log.access"))"
    }

    /// Advice for a file that cannot be made in `folder`, which may be missing itself.
    private static func advice(_ folder: String, _ code: Int32, _ key: String) -> String {
        guard let found = FolderState(folder) else { return "name another path in '\(key)'" }
        if found.kind != S_IFDIR { return "\(found.path) is not a folder; name another path in '\(key)'" }
        if code == EROFS { return "\(found.path) is mounted read-only; name another path in '\(key)'" }
        // If the folder is missing, making it has failed already.
        guard code == EACCES || code == EPERM || access(found.path, W_OK | X_OK) != 0 else {
            return found.path == folder
                ? "name another path in '\(key)'" : "make the folder \(folder), or name another path in '\(key)'"
        }
        if found.owner == geteuid() {
            return
                "\(found.path) has mode \(found.mode): 'chmod u+rwx \(found.path)' lets the daemon write there, or name another path in '\(key)'"
        }
        let whose = "\(found.path) belongs to \(found.ownerName) (mode \(found.mode)), and the daemon runs as \(user)"
        if found.path == folder, systemFolders.contains(folder) {
            return
                "\(folder) is the system's, and the daemon runs as \(user): name a path in a folder of the daemon's own, such as \(folder == "/" ? "" : folder)/drydock, in '\(key)'"
        }
        let gift =
            found.path == folder
            ? "'chown \(user) \(folder)' gives it the folder"
            : "make \(folder) and give it to the daemon with 'chown \(user) \(folder)'"
        return "\(whose): \(gift), or name another path in '\(key)'"
    }

    /// Folders that belong to root on every machine, and that nobody is advised to give away.
    private static let systemFolders: Set<String> = [
        "/", "/dev", "/etc", "/home", "/mnt", "/opt", "/root", "/run", "/srv", "/tmp", "/usr", "/usr/local", "/var",
        "/var/cache", "/var/lib", "/var/log", "/var/run", "/var/spool", "/var/tmp",
    ]

    // MARK: - Users

    /// The name of the user that the daemon runs as.
    private static var user: String { name(ofUser: geteuid()) }

    fileprivate static func name(ofUser identifier: uid_t) -> String {
        var entry = passwd()
        var buffer = [CChar](repeating: 0, count: 16384)
        var found: UnsafeMutablePointer<passwd>?
        let status = getpwuid_r(identifier, &entry, &buffer, buffer.count, &found)
        // The name points into the buffer, which outlives this line.
        guard status == 0, found != nil, let name = entry.pw_name else { return "\(identifier)" }
        return String(cString: name)
    }
}

/// The file or folder at a path, or at the nearest path above it that exists.
private struct FolderState {
    let path: String
    let kind: mode_t
    let owner: uid_t
    /// The permissions in octal.
    let mode: String

    init?(_ wanted: String) {
        let nearest = Ancestors.nearest(to: wanted) { path -> stat? in
            var status = stat()
            return stat(path, &status) == 0 ? status : nil
        }
        // A relative path that does not exist says nothing about the folders above it.
        guard let (path, status) = nearest, path == wanted || wanted.hasPrefix("/") else { return nil }
        self.path = path
        kind = status.st_mode & S_IFMT
        owner = status.st_uid
        mode = "0" + String(status.st_mode & 0o7777, radix: 8)
    }

    var ownerName: String { Remedies.name(ofUser: owner) }
}
