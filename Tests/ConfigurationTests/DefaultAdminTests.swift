// Where a daemon takes commands whose configuration names no address: in a folder that nobody else can write to.

import EventLoop
import Foundation
import Testing

@testable import Configuration

@Suite struct DefaultAdminTests {
    private let me = UInt32(geteuid())

    /// A folder of this user with these permissions.
    private func folder(_ mode: Int = 0o700) throws -> Folder {
        let folder = try Folder()
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: folder.path)
        return folder
    }

    @Test func `the variables count where they name a folder of the user's own`() throws {
        let own = try folder()
        let xdg = ["XDG_RUNTIME_DIR": own.path + "/"]
        #expect(DefaultAdmin.folder(environment: xdg, user: me) == own.path + "/drydock")
        #expect(DefaultAdmin.folder(environment: xdg, user: me + 1) == "/tmp/drydock-\(me + 1)")
        #expect(DefaultAdmin.folder(environment: ["RUNTIME_DIRECTORY": own.path + ":/b"], user: me) == own.path)
        let service = try folder()
        let both = ["XDG_RUNTIME_DIR": own.path, "RUNTIME_DIRECTORY": service.path]
        #expect(DefaultAdmin.folder(environment: both, user: me) == service.path)
        let fallback = me == 0 ? "/run/drydock" : "/tmp/drydock-\(me)"
        for path in ["", "run", own.path + "/absent", own.path + "/" + String(repeating: "a", count: 100)] {
            #expect(DefaultAdmin.folder(environment: ["XDG_RUNTIME_DIR": path], user: me) == fallback, "\(path)")
        }
        for mode in [0o770, 0o702, 0o777] {
            let open = try folder(mode)
            withExtendedLifetime(open) {
                #expect(DefaultAdmin.folder(environment: ["XDG_RUNTIME_DIR": $0.path], user: me) == fallback, "\(mode)")
                #expect(FileManager.default.fileExists(atPath: $0.path))
            }
        }
        #expect(DefaultAdmin.folder(environment: [:], user: 0) == "/run/drydock")
        #expect(DefaultAdmin.folder(environment: [:], user: 1234567) == "/tmp/drydock-1234567")
    }

    @Test func `commands look wherever a daemon of the user may have chosen`() {
        #expect(
            DefaultAdmin.folders(environment: ["XDG_RUNTIME_DIR": "/run/user/7/"], user: 7)
                == ["/run/user/7/drydock", "/tmp/drydock-7"]
        )
        #expect(DefaultAdmin.folders(environment: [:], user: 7) == ["/run/user/7/drydock", "/tmp/drydock-7"])
        #expect(DefaultAdmin.folders(environment: ["XDG_RUNTIME_DIR": "/x"], user: 0) == ["/x/drydock"])
        #expect(DefaultAdmin.folders(environment: ["XDG_RUNTIME_DIR": "x"], user: 0) == ["/run/user/0/drydock"])
    }

    @Test func `no folder of another user, none that others may write to, and no link is trusted`() throws {
        let own = try folder()
        #expect(DefaultAdmin.distrust(own.path, user: me) == nil)
        #expect(DefaultAdmin.distrust(own.path, user: me + 1)?.contains("belongs to the user \(me)") == true)
        let link = own.path + "/link"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: own.path)
        #expect(DefaultAdmin.distrust(link, user: me) == "\(link) is not a folder")
        #expect(DefaultAdmin.make(link, user: me) == "\(link) is not a folder")
        let file = try own.write("file", "")
        #expect(DefaultAdmin.distrust(file, user: me) == "\(file) is not a folder")
        for mode in [0o720, 0o702, 0o777] {
            let open = try folder(mode)
            withExtendedLifetime(open) {
                #expect(DefaultAdmin.distrust($0.path, user: me)?.contains("is open to other users") == true)
            }
        }
        #expect(DefaultAdmin.make(own.path + "/a/b", user: me)?.contains("cannot be made (No such file") == true)
        #expect(DefaultAdmin.make(own.path + "/made", user: me) == nil)
        #expect(DefaultAdmin.make(own.path + "/made", user: me) == nil)
        let made = try FileManager.default.attributesOfItem(atPath: own.path + "/made")
        #expect(made[.posixPermissions] as? Int == 0o700)
    }

    @Test func `in tmp nobody else may even look into the folder`() throws {
        // A user that this machine does not have: the folder is this process's own, and is looked at as that user's.
        let path = DefaultAdmin.privateFolder(me)
        let wasThere = FileManager.default.fileExists(atPath: path)
        guard !wasThere else { return #expect(DefaultAdmin.distrust(path, user: me) == nil) }
        #expect(mkdir(path, 0o755) == 0)
        defer { rmdir(path) }
        #expect(DefaultAdmin.distrust(path, user: me)?.contains("write chmod 700 \(path)") == true)
        #expect(chmod(path, 0o700) == 0 && DefaultAdmin.distrust(path, user: me) == nil)
    }

    @Test func `an address in the environment is one on this machine`() throws {
        #expect(try ListenAddress.admin("/a/b") == .unix(path: "/a/b"))
        #expect(try ListenAddress.admin("unix:/a/b") == .unix(path: "/a/b"))
        #expect(try ListenAddress.admin("127.0.0.1:81") == .tcp(host: "127.0.0.1", port: 81))
        for (text, part) in [("0.0.0.0:81", "not on loopback"), (":81", "not on loopback"), ("a", "has no port")] {
            let error = #expect(throws: ConfigurationErrors.self) { try ListenAddress.admin(text) }
            #expect(error?.errors.first?.message.contains(part) == true)
        }
    }
}
