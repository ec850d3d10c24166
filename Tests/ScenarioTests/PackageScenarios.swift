// apt-get through the daemon, from a package folder made here, with every apt folder private to the test.

import Foundation
import TestSupport
import Testing

extension Scenarios.RealClients {
    @Suite(.timeLimit(.minutes(10))) struct Packages {
        @Test func aptUpdatesAndDownloads() throws {
            let nginx = try Scenarios.RealClients.nginx()
            try makePackages(nginx)
            let daemon = try Scenarios.RealClients.forwarding()
            let folder = try TemporaryFolder()
            var whole = [String]()
            for run in ["first", "second"] {
                let target = try folder.folder(run)
                try makeClient(folder, run, nginx, daemon)
                let environment = ["APT_CONFIG": "\(target)/apt.conf"]
                try Shell.must("apt-get", ["-q", "update"], environment: environment, folder: target)
                try Shell.must("apt-get", ["-q", "download", "tiny"], environment: environment, folder: target)
                let package = "tiny_1.0_all.deb"
                #expect(try SHA256.file("\(target)/\(package)") == SHA256.file("\(nginx.root)/apt/\(package)"))
                let now = try Scenarios.RealClients.wholeAnswers(nginx)
                if run == "second" { #expect(now == whole, "the second run fetched again") }
                whole = now
            }
            #expect(try nginx.requests(method: "GET", path: "/apt/./tiny_1.0_all.deb") == 1)
            #expect(whole.contains { $0.hasSuffix("Release") })
        }

        private func makePackages(_ nginx: NginxOrigin) throws {
            let folder = nginx.folder
            try folder.write(
                "package/DEBIAN/control",
                """
                Package: tiny
                Version: 1.0
                Architecture: all
                Maintainer: Nobody <nobody@localhost>
                Description: a file

                """
            )
            try folder.writePattern("package/usr/share/tiny/data", count: 200_000)
            try folder.folder("root/apt")
            try Shell.must(
                "dpkg-deb",
                ["--build", "--root-owner-group", folder.file("package"), "\(nginx.root)/apt/tiny_1.0_all.deb"]
            )
            let index = try Shell.must("dpkg-scanpackages", ["-m", "."], folder: "\(nginx.root)/apt")
            try nginx.write("apt/Packages", index)
            let release = """
                Origin: test
                Suite: test
                Date: \(httpDate().replacing("GMT", with: "UTC"))
                Architectures: all amd64 arm64
                SHA256:
                 \(try SHA256.bytes(Array(index.utf8))) \(index.utf8.count) Packages

                """
            try nginx.write("apt/Release", release)
        }

        private func makeClient(
            _ folder: TemporaryFolder,
            _ run: String,
            _ nginx: NginxOrigin,
            _ daemon: Daemon
        ) throws {
            for name in [
                "etc/apt/apt.conf.d", "etc/apt/preferences.d", "etc/apt/sources.list.d", "etc/apt/trusted.gpg.d",
                "var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/log/apt",
            ] {
                try folder.folder("\(run)/\(name)")
            }
            try folder.write("\(run)/var/lib/dpkg/status", "")
            try folder.write("\(run)/etc/apt/sources.list", "deb [trusted=yes] \(nginx.url)/apt ./\n")
            try folder.write(
                "\(run)/apt.conf",
                """
                Dir "\(folder.file(run))/";
                Dir::State::status "\(folder.file(run))/var/lib/dpkg/status";
                APT::Sandbox::User "\(NSUserName())";
                Acquire::http::Proxy "\(daemon.url)";
                Acquire::Languages "none";
                Acquire::Retries "0";
                Acquire::http::Timeout "120";

                """
            )
        }
    }
}
