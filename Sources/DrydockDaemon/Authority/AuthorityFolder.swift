// The folder of the local authority: its certificate, its key, and the mark that says that it is Drydock's.

package import EventLoop
import Files
import Glibc
package import TLS

/// Why the local authority cannot be made, read or removed.
package enum AuthorityError: Error, Sendable, Equatable, CustomStringConvertible {
    /// There is none.
    case absent(String)
    /// There is one already.
    case present(String)
    /// The folder belongs to something else; nothing in it was changed.
    case foreign(path: String, found: String)
    /// Others may read the key.
    case open(String)
    /// Its files are not those of an authority.
    case unusable(path: String, reason: String)
    /// A file or folder cannot be read or written.
    case system(SystemError)

    package var description: String {
        switch self {
        case .absent(let path): "there is no local authority in \(path); make it with 'drydock ca create'"
        case .present(let path):
            "there is a local authority in \(path) already, and programs may trust it; 'drydock ca show' shows it; remove the folder to make another one"
        case .foreign(let path, let found):
            "\(path) is not empty (it has '\(found)') and is no folder of a local authority, so nothing in it was changed; name another folder with 'ca'"
        case .open(let path): "other users can read the key of the local authority, \(path); write chmod 600 \(path)"
        case .unusable(let path, let reason): "\(path) is no certificate and key of a local authority: \(reason)"
        case .system(let error) where error.code == EACCES || error.code == EPERM:
            "\(error); this user may not do that: use the user of the daemon, or root"
        case .system(let error): "\(error)"
        }
    }
}

/// The folder of a local authority. Everything here blocks.
package struct AuthorityFolder: Sendable {
    package let path: String
    private static let mark = "drydock 1 ca\n"
    private static let markName = "version"

    package init(_ path: String) { self.path = path }

    package var certificatePath: String { path + "/ca.pem" }
    package var keyPath: String { path + "/ca.key" }

    /// Reads certificate and key.
    package func load() throws(AuthorityError) -> LocalAuthority {
        let certificate = try read(certificatePath)
        var status = stat()
        if stat(keyPath, &status) == 0, status.st_mode & (S_IRGRP | S_IROTH | S_IWGRP | S_IWOTH) != 0 {
            throw .open(keyPath)
        }
        let key = try read(keyPath)
        do throws(CertificateError) {
            return try LocalAuthority(certificate: certificate, key: key)
        } catch {
            throw .unusable(path: path, reason: "\(error)")
        }
    }

    /// Reads the certificate alone, which everybody may.
    package func certificate() throws(AuthorityError) -> Certificate {
        let text = try read(certificatePath)
        do throws(CertificateError) { return try PEM.certificates(in: text)[0] } catch {
            throw .unusable(path: certificatePath, reason: "\(error)")
        }
    }

    /// Makes the folder, a key and a certificate for ten years. The files belong to the owner of the folder around them,
    /// so that root makes them for the user of a service.
    /// - Parameters:
    ///   - constraints: names and addresses that it may issue for; none for all.
    ///   - now: seconds since 1970.
    package func create(constraints: [HostName] = [], now: Int64) throws(AuthorityError) -> LocalAuthority {
        let names = FolderNames.of(path)
        if names.contains("ca.key") || names.contains("ca.pem") { throw .present(path) }
        // What is left of a creation that was interrupted is made anew.
        if let found = names.filter({
            ![Self.markName, "\(Self.markName).new", "ca.key.new", "ca.pem.new"].contains($0)
        }).sorted().first {
            throw .foreign(path: path, found: found)
        }
        let authority: LocalAuthority
        do throws(CertificateError) {
            authority = try LocalAuthority(name: Self.name(now), constraints: constraints, now: now)
        } catch {
            throw .unusable(path: path, reason: "\(error)")
        }
        guard let key = authority.keyPEM else { throw .unusable(path: path, reason: "the key cannot be written") }
        let owner = try makeFolder()
        do throws(SystemError) {
            try WholeFile.replace("\(path)/\(Self.markName)", with: Array(Self.mark.utf8))
            // The key last: a folder that has it has all.
            try WholeFile.replace(certificatePath, with: Array(authority.certificate.pem.utf8))
            guard chmod(certificatePath, 0o644) == 0 else { throw SystemError("chmod \(certificatePath)") }
            try WholeFile.replace(keyPath, with: Array(key.utf8))
            if let owner {
                for file in [path, "\(path)/\(Self.markName)", certificatePath, keyPath] {
                    guard chown(file, owner.user, owner.group) == 0 else { throw SystemError("chown \(file)") }
                }
            }
        } catch {
            throw .system(error)
        }
        return authority
    }

    /// Makes the folder and those above it.
    /// - Returns: whose the files are to be, if that is not this process' user.
    private func makeFolder() throws(AuthorityError) -> (user: uid_t, group: gid_t)? {
        var missing = [path]
        while let last = missing.last {
            let parent = Ancestors.parent(of: last)
            guard parent != last, access(parent, F_OK) != 0 else { break }
            missing.append(parent)
        }
        var status = stat()
        let isKnown = stat(Ancestors.parent(of: missing.last ?? path), &status) == 0
        for folder in missing.reversed() {
            // Certificates are read by all, and so is the way to them; a key has permissions of its own.
            guard mkdir(folder, 0o755) == 0 || errno == EEXIST else { throw .system(SystemError("mkdir \(folder)")) }
        }
        return isKnown && geteuid() == 0 && status.st_uid != 0 ? (status.st_uid, status.st_gid) : nil
    }

    private func read(_ file: String) throws(AuthorityError) -> [UInt8] {
        do throws(SystemError) { return try WholeFile.readEdited(file) } catch {
            throw error.code == ENOENT || error.code == ENOTDIR ? .absent(path) : .system(error)
        }
    }

    /// What lists of trusted authorities show: the machine, and the day, so that two of one machine are told apart.
    private static func name(_ now: Int64) -> String {
        var buffer = [CChar](repeating: 0, count: 65)
        let isKnown = gethostname(&buffer, buffer.count - 1) == 0
        let host =
            isKnown ? String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self) : ""
        // A common name has 64 bytes at most.
        return "Drydock local CA \(day(now)) \(host.prefix(36))"
    }

    /// A day such as `2026-01-31`, in UTC.
    package static func day(_ seconds: Int64) -> String {
        var (time, parts) = (time_t(seconds), tm())
        guard gmtime_r(&time, &parts) != nil else { return "" }
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(1900 + parts.tm_year)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
    }
}
