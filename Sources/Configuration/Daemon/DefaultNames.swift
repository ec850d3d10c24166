// The defaults of a daemon whose file gives no name and no admin address: a name that no other daemon of a chain has,
// and an admin socket that the commands of its user find.

package import EventLoop
import FoundationEssentials
import Glibc
import HTTPCaching

enum DefaultName {
    /// The default name: `drydock-` and eight digits of a digest of this machine and of the listen addresses. It is the
    /// same at every start, and another one on another machine or another address, and it reveals neither to those who
    /// read Via.
    ///
    /// With port 0 the kernel chooses another port at every start; the process is part of the digest then.
    static func made(listen: [ListenAddress], machine: String = machine, process: Int32 = getpid()) -> String {
        var parts = [machine] + listen.map(\.description)
        if listen.contains(where: \.hasAnyPort) { parts.append(String(process)) }
        // SHA-256 is always available; only MD5 may be refused.
        let digest = ContentDigest.sha256.hex(parts.joined(separator: "\n").utf8) ?? ""
        return "drydock-" + digest.prefix(8)
    }

    /// The host name, and the machine ID of systemd if there is one, which tells machines of one name apart.
    private static let machine: String = {
        var buffer = [CChar](repeating: 0, count: 256)
        // The last byte of the buffer stays zero, whatever the length of the name.
        let isKnown = gethostname(&buffer, buffer.count - 1) == 0
        let host =
            isKnown ? String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self) : ""
        return host + "\n" + ((try? String(contentsOfFile: "/etc/machine-id", encoding: .utf8)) ?? "")
    }()
}

extension ListenAddress {
    fileprivate var hasAnyPort: Bool {
        if case .tcp(_, port: 0) = self { true } else { false }
    }
}

/// The admin socket of a user, in a folder that only this user can write to.
package enum DefaultAdmin {
    /// The socket of the daemon that the service manager runs, and of the daemon of root.
    package static let systemSocket = "/run/drydock/admin.sock"

    /// The path of the admin socket in a folder.
    package static func socket(in folder: String) -> String { folder + "/admin.sock" }

    /// The folder of a daemon's socket: the `RUNTIME_DIRECTORY` that systemd gives a service, else `drydock` in
    /// `XDG_RUNTIME_DIR`, else `/run/drydock` for root and `/tmp/drydock-UID` for all others.
    ///
    /// A variable counts only if it names a folder that this user alone can write to.
    package static func folder(environment: [String: String], user: UInt32 = geteuid()) -> String {
        if let given = environment["RUNTIME_DIRECTORY"].flatMap({ $0.split(separator: ":").first }),
            let folder = usable(String(given), user)
        {
            return folder
        }
        if let runtime = environment["XDG_RUNTIME_DIR"].flatMap({ usable($0, user) }), fits(runtime + "/drydock") {
            return runtime + "/drydock"
        }
        return user == 0 ? "/run/drydock" : privateFolder(user)
    }

    /// The folders in which commands search for a daemon of their own user, in order: those that the daemon may have
    /// chosen with this environment or another.
    package static func folders(environment: [String: String], user: UInt32 = geteuid()) -> [String] {
        let runtime = environment["XDG_RUNTIME_DIR"].flatMap { $0.hasPrefix("/") ? Paths.normal($0) : nil }
        let first = (runtime ?? "/run/user/\(user)") + "/drydock"
        return (fits(first) ? [first] : []) + (user == 0 ? [] : [privateFolder(user)])
    }

    /// Makes the folder of a socket, with mode 0700, unless it exists.
    /// - Returns: why it cannot be used, as the end of a sentence; nil if it can be used.
    package static func make(_ folder: String, user: UInt32 = geteuid()) -> String? {
        if mkdir(folder, 0o700) != 0, errno != EEXIST {
            return "the folder \(folder) cannot be made (\(String(cString: strerror(errno))))"
        }
        return distrust(folder, user: user)
    }

    /// The reason why a folder is not this user's alone, or is no folder; nil if all is well. A symbolic link is never
    /// followed.
    package static func distrust(_ folder: String, user: UInt32 = geteuid()) -> String? {
        var status = stat()
        guard lstat(folder, &status) == 0 else {
            return "the folder \(folder) cannot be looked at (\(String(cString: strerror(errno))))"
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { return "\(folder) is not a folder" }
        guard status.st_uid == user else {
            return "the folder \(folder) belongs to the user \(status.st_uid), and not to \(user)"
        }
        // In /tmp only the folder protects the socket; elsewhere other users may read the folder.
        let forbidden: mode_t = folder == privateFolder(user) ? 0o077 : 0o022
        guard status.st_mode & forbidden == 0 else {
            return "the folder \(folder) is open to other users; write chmod 700 \(folder)"
        }
        return nil
    }

    static func privateFolder(_ user: UInt32) -> String { "/tmp/drydock-\(user)" }

    private static func usable(_ folder: String, _ user: UInt32) -> String? {
        guard folder.hasPrefix("/") else { return nil }
        let normal = Paths.normal(folder)
        return fits(normal) && distrust(normal, user: user) == nil ? normal : nil
    }

    /// Whether the path of the socket in a folder is short enough: a unix socket's path has at most 107 bytes.
    private static func fits(_ folder: String) -> Bool { socket(in: folder).utf8.count <= 107 }
}

extension ListenAddress {
    /// Parses the admin address in the variable `DRYDOCK_ADMIN`: `unix:PATH`, an absolute path, or an address on
    /// loopback.
    /// - Throws: `ConfigurationErrors` with the mistake.
    package static func admin(_ text: String) throws(ConfigurationErrors) -> ListenAddress {
        let position = SourcePosition(file: "DRYDOCK_ADMIN", line: 1, column: 1)
        do throws(ScalarProblem) {
            let address = try Addresses.listen(text.hasPrefix("/") ? "unix:" + text : text)
            if address.isLoopback { return address }
            throw ScalarProblem("'\(text)' is not on loopback; write unix:/PATH, or 127.0.0.1:PORT")
        } catch {
            throw ConfigurationErrors(errors: [ConfigurationError(position: position, message: error.message)])
        }
    }
}
