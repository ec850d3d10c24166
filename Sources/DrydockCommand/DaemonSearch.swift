// How a command finds a daemon that its options do not name: by a configuration file, or by the sockets of this user's
// daemons.

import Configuration
import DrydockDaemon
import Glibc
import ProxyServer

/// What this process knows of daemons.
struct DaemonSearch {
    let environment: [String: String]

    /// The address in `DRYDOCK_ADMIN`.
    var named: String? { environment["DRYDOCK_ADMIN"].flatMap { $0.isEmpty ? nil : $0 } }

    /// The default sockets of this user's daemons; only in folders that this user alone can write to.
    var own: [AdminClient] {
        DefaultAdmin.folders(environment: environment).filter { DefaultAdmin.distrust($0) == nil }.map {
            AdminClient(address: "unix:" + DefaultAdmin.socket(in: $0))
        }
    }

    var system: AdminClient { AdminClient(address: "unix:" + DefaultAdmin.systemSocket) }

    /// The daemon of a configuration file. A file that is there and wrong never leads to another daemon, and neither
    /// does one that leaves the address to the default.
    /// - Throws: `Failure`, with code 3 where no daemon is there.
    func daemon(of file: String) throws -> AdminClient {
        let address: ListenAddress?
        do throws(ConfigurationErrors) {
            address = try Configuration.adminAddress(path: file, environment: environment)
        } catch {
            printError(error.description)
            throw Failure(message: "no daemon was asked; correct the file, or name the daemon with --admin ADDRESS")
        }
        if let address { return AdminClient(address: address.description) }
        let known = named.map { [AdminClient(address: $0)] } ?? own + [system]
        let there = known.filter(\.isThere)
        if there.isEmpty { throw nowhere(known) }
        var others: [String] = []
        for client in there {
            guard let which = client.which else { continue }
            if let path = which.configuration, Self.isSame(path, file) { return client }
            others.append("the daemon at \(client.address) is another one (\(which.text))")
        }
        if others.isEmpty { others = there.map { "what listens at \($0.address) does not answer" } }
        throw Failure.noDaemon(
            "no daemon of \(file) was found, and none was asked: \(others.joined(separator: "; ")); start it, write 'admin: unix:/PATH' into the file, or name the daemon with --admin ADDRESS"
        )
    }

    /// Whether two paths lead to one file.
    private static func isSame(_ path: String, _ other: String) -> Bool {
        if other == Configuration.standardInput { return path == Configuration.standardInputName }
        var (one, two) = (stat(), stat())
        guard stat(path, &one) == 0, stat(other, &two) == 0 else { return false }
        return one.st_dev == two.st_dev && one.st_ino == two.st_ino
    }

    /// The failure that no daemon listens at any of the places.
    func nowhere(_ places: [AdminClient]) -> Failure {
        var reasons = places.map { place in
            let reason = place.isThere ? "it has just come" : String(cString: strerror(errno))
            return "no daemon at \(place.address): \(reason)"
        }
        if named == nil {
            // Name a folder that exists and that others can write to; a missing one needs no warning.
            let folders = DefaultAdmin.folders(environment: environment).filter { access($0, F_OK) == 0 }
            reasons += folders.compactMap { DefaultAdmin.distrust($0).map { "\($0), so that nothing in it was asked" } }
            if own.isEmpty { reasons.insert("this user has no daemon", at: 0) }
        }
        return .noDaemon("\(reasons.joined(separator: "; ")); start one, or name it with --admin or -c")
    }
}
