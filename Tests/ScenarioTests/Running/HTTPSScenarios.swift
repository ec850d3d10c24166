// Clients that speak TLS: curl, openssl and Python against certificates of the local authority and of files.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct HTTPS {
        /// A daemon with a plain address, one with TLS and one that takes both, and the local authority beside it.
        struct World {
            let origin: ScriptedOrigin
            let home: DaemonHome
            let daemon: Daemon
            let secure: UInt16
            let both: UInt16
            var authority: String { "\(home.folder.path)/ca/ca.pem" }

            init(tls: String = "local", _ more: String = "") throws {
                origin = try ScriptedOrigin { request in
                    .answer(
                        "of \(request.target)",
                        fields: [("Cache-Control", "max-age=600"), ("Strict-Transport-Security", "max-age=99")]
                    )
                }
                home = try DaemonHome()
                let others = try [DaemonHome(), DaemonHome()]
                (secure, both) = (UInt16(others[0].port), UInt16(others[1].port))
                let made = try Shell.run(Daemon.binary(), ["ca", "create", "--ca", "\(home.folder.path)/ca"])
                try #require(made.succeeded, "\(made.report)")
                let settings = DaemonSettings(
                    "tls: \(tls)\nca: \(home.folder.path)/ca\nlimits: { head_timeout: 1s }\n\(more)"
                        + "services: [{ name: api, match: { prefix: /api }, base_url: \"\(origin.url)\" }]"
                )
                let text = settings.text(at: home).replacing(
                    "listen: 127.0.0.1:\(home.port)",
                    with:
                        "listen: [127.0.0.1:\(home.port), \"https://127.0.0.1:\(secure)\", \"any://127.0.0.1:\(both)\"]"
                )
                daemon = try Daemon(text: text, at: home)
            }

            func curl(_ url: String, _ more: [String] = []) throws -> ShellResult {
                try Shell.run(
                    "curl",
                    ["-sS", "-g", "-D", "-", "--cacert", authority, "--max-time", "20"] + more + [url]
                )
            }

            func openssl(_ arguments: [String], port: UInt16? = nil, input: String = "") throws -> ShellResult {
                try Shell.run(
                    "openssl",
                    ["s_client", "-connect", "127.0.0.1:\(port ?? secure)", "-CAfile", authority] + arguments,
                    input: Array(input.utf8)
                )
            }
        }

        /// Writes a certificate and a key that openssl makes; the certificate is its own authority.
        private static func certificate(_ name: String, _ folder: String, _ file: String) throws {
            let made = try Shell.run(
                "openssl",
                [
                    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "90",
                    "-subj", "/CN=\(name)",
                    "-addext", "subjectAltName=DNS:\(name)", "-keyout", "\(folder)/new.key", "-out",
                    "\(folder)/new.pem",
                ]
            )
            try #require(made.succeeded, "\(made.report)")
            chmod("\(folder)/new.key", 0o600)
            // In place of the old ones, as tools that renew certificates do.
            rename("\(folder)/new.key", "\(folder)/\(file).key")
            rename("\(folder)/new.pem", "\(folder)/\(file).pem")
        }

        @Test func namesThatTheDaemonAnswersForHaveCertificates() throws {
            let world = try World()
            for (index, url) in [
                "http://127.0.0.1:\(world.home.port)", "https://127.0.0.1:\(world.secure)",
                "https://localhost:\(world.secure)",
                "https://api.localhost:\(world.both)", "http://127.0.0.1:\(world.both)",
            ].enumerated() {
                let pinned = [
                    "--resolve", "localhost:\(world.secure):127.0.0.1", "--resolve",
                    "api.localhost:\(world.both):127.0.0.1",
                ]
                let answer = try world.curl(url + "/api/x", pinned)
                #expect(answer.succeeded && answer.output.hasSuffix("of /x"), "\(url): \(answer.report)")
                #expect(answer.output.contains(index == 0 ? "fwd=uri-miss" : "; hit"), "\(url): \(answer.output)")
                // It would hold for every port of localhost.
                #expect(!answer.output.contains("Strict-Transport-Security"))
            }
            #expect(world.origin.requests() == 1)
            let foreign = try world.curl(
                "https://evil.example:\(world.secure)/",
                ["--resolve", "evil.example:\(world.secure):127.0.0.1"]
            )
            #expect(!foreign.succeeded && foreign.errors.contains("unrecognized name"), "\(foreign.report)")
            let plain = try world.curl("http://127.0.0.1:\(world.secure)/api/x")
            #expect(!plain.succeeded && plain.output.isEmpty, "\(plain.report)")
            #expect(eventually { world.daemon.errors.contains("there is no certificate for “evil.example”") })
            #expect(world.daemon.errors.contains("it speaks plain HTTP"))
        }

        @Test func versionsAndTicketsAreThoseOfTheDay() throws {
            let world = try World()
            let old = try world.openssl(["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"])
            #expect(!old.succeeded, "\(old.report)")
            for version in ["-tls1_2", "-tls1_3"] {
                let session = "\(world.home.folder.path)/session\(version)"
                let request = "GET /api/x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
                let first = try world.openssl([version, "-sess_out", session, "-ign_eof"], input: request)
                #expect(first.output.contains("of /x") && first.output.contains("New, TLSv1."), "\(first.report)")
                // Another loop may take it: all have the same keys of tickets.
                for _ in 0..<4 {
                    let again = try world.openssl([version, "-sess_in", session, "-ign_eof"], input: request)
                    #expect(
                        again.output.contains("of /x") && again.output.contains("Reused, TLSv1."),
                        "\(again.report)"
                    )
                }
            }
            let protocols = try world.openssl(["-alpn", "h2"])
            #expect(protocols.errors.contains("no application protocol"), "\(protocols.report)")
        }

        @Test func aClientThatShakesHandsHalfwayCostsNobodyAnything() throws {
            let world = try World()
            let hello: [UInt8] = [22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3]
            var clients: [RawClient] = []
            for index in 0..<200 {
                let client = try RawClient(port: Int(index % 2 == 0 ? world.secure : world.both))
                if index % 4 < 2 { try client.send(hello) }
                clients.append(client)
            }
            #expect(try world.curl("https://127.0.0.1:\(world.secure)/api/x").succeeded)
            // The deadline of a head ends each of them.
            for client in clients { #expect(try client.isClosedByServer()) }
            #expect(try world.curl("https://127.0.0.1:\(world.both)/api/x").succeeded)
        }

        @Test func changedCertificatesAreTakenUpAndBrokenOnesAreNot() throws {
            let folder = try TemporaryFolder("tls")
            try Self.certificate("one.example", folder.path, "server")
            let world = try World(tls: "{ certificate: \(folder.path)/server.pem, key: \(folder.path)/server.key }")
            func subject() throws -> String { try world.openssl(["-servername", "any.example"]).output }
            #expect(try subject().contains("CN = one.example"))
            try Self.certificate("two.example", folder.path, "server")
            #expect(try eventually { try subject().contains("CN = two.example") })
            try Data("no key\n".utf8).write(to: URL(filePath: folder.path + "/server.key"))
            #expect(eventually { world.daemon.errors.contains("there is no private key") })
            #expect(try subject().contains("CN = two.example"))
            try Self.certificate("three.example", folder.path, "server")
            #expect(try eventually { try subject().contains("CN = three.example") })
        }

        @Test func eachNameHasItsCertificateAndClientsShowTheirs() throws {
            let folder = try TemporaryFolder("tls")
            for name in ["one", "two", "client"] { try Self.certificate("\(name).example", folder.path, name) }
            func files(_ name: String) -> String {
                "certificate: \(folder.path)/\(name).pem, key: \(folder.path)/\(name).key"
            }
            let world = try World(
                tls: "[{ \(files("one")), clients: \(folder.path)/client.pem }, { \(files("two")) }, local]"
            )
            let own = ["-cert", "\(folder.path)/client.pem", "-key", "\(folder.path)/client.key"]
            for (asked, shown) in [
                ("one.example", "one.example"), ("two.example", "two.example"), ("x.example", "one.example"),
                ("localhost", "localhost"),
            ] {
                let session = try world.openssl(["-servername", asked] + own)
                #expect(session.output.contains("CN = \(shown)"), "\(asked): \(session.report)")
            }
            let url = "https://localhost:\(world.secure)/api/x"
            let resolved = ["--resolve", "localhost:\(world.secure):127.0.0.1"]
            #expect(try !world.curl(url, resolved).succeeded)
            let shown = try world.curl(
                url,
                resolved + ["--cert", "\(folder.path)/client.pem", "--key", "\(folder.path)/client.key"]
            )
            #expect(shown.succeeded && shown.output.hasSuffix("of /x"), "\(shown.report)")
            #expect(eventually { world.daemon.errors.contains("it shows no certificate, and one is asked for") })
        }

        @Test func certificatesOfClientsMayBeLeftToThem() throws {
            let folder = try TemporaryFolder("tls")
            for name in ["client", "stranger"] { try Self.certificate("\(name).example", folder.path, name) }
            let world = try World(
                tls: "{ authority: local, clients: { ca: \(folder.path)/client.pem, require: false } }"
            )
            let url = "https://127.0.0.1:\(world.secure)/api/x"
            for (name, isServed) in [(nil, true), ("client", true), ("stranger", false)] as [(String?, Bool)] {
                let own =
                    name.map { ["--cert", "\(folder.path)/\($0).pem", "--key", "\(folder.path)/\($0).key"] } ?? []
                let answer = try world.curl(url, own)
                #expect(answer.output.hasSuffix("of /x") == isServed, "\(name ?? "nobody"): \(answer.report)")
            }
        }

        @Test func aLargeBodyArrivesWholeAndPythonReadsIt() throws {
            let world = try World()
            let script = """
                import ssl, http.client, sys
                context = ssl.create_default_context(cafile=sys.argv[1])
                client = http.client.HTTPSConnection("127.0.0.1", int(sys.argv[2]), context=context)
                for index in range(3):
                    client.request("POST", "/api/echo", body=bytes(300000))
                    answer = client.getresponse()
                    print(answer.status, answer.read().decode())
                """
            let answers = try Shell.run("python3", ["-c", script, world.authority, "\(world.secure)"])
            #expect(answers.output == "200 of /echo\n200 of /echo\n200 of /echo\n", "\(answers.report)")
            #expect(world.origin.log.filter { $0.method == "POST" }.map(\.body.count) == [300_000, 300_000, 300_000])
        }

        @Test func theDatabaseOfABrowserTakesTheAuthorityInAndGivesItUp() throws {
            let world = try World()
            let user = try TemporaryFolder("home")
            let database = "sql:\(try user.folder(".pki/nssdb"))"
            func certutil(_ words: String...) throws -> ShellResult {
                try Shell.run("certutil", words + ["-d", database])
            }
            #expect(try certutil("-N", "--empty-password").succeeded)
            for (verb, isTrusted) in [("trust", true), ("trust", true), ("untrust", false), ("untrust", false)] {
                let done = try Shell.run(
                    Daemon.binary(),
                    ["ca", verb, "--store", "nss", "--ca", "\(world.home.folder.path)/ca"],
                    environment: ["HOME": user.path]
                )
                #expect(done.succeeded, "\(done.report)")
                let name = try certutil("-L").output.split(separator: "\n").first { $0.hasPrefix("drydock-") }
                #expect((name != nil) == isTrusted)
                guard let name else { continue }
                // As NSS itself judges: an authority for servers, and for nothing else.
                #expect(name.contains(" C,, "), "\(name)")
                let judged = try certutil("-V", "-n", String(name.prefix { $0 != " " }), "-u", "L")
                #expect(judged.output.contains("certificate is valid"), "\(judged.report)")
            }
        }

        @Test func theAuthorityIsShownTrustedByLinesAndNeverByAccidentGivenAway() throws {
            let world = try World()
            let options = ["--ca", "\(world.home.folder.path)/ca"]
            func run(_ words: String...) throws -> ShellResult {
                try Shell.run(Daemon.binary(), ["ca"] + words + options)
            }
            let key = try String(contentsOfFile: "\(world.home.folder.path)/ca/ca.key", encoding: .utf8)
            let certificate = try String(contentsOfFile: world.authority, encoding: .utf8)
            #expect(try run("export").output == certificate)
            #expect(try run("export", "--with-key").output == certificate + key)
            #expect(try run("show").output.contains("name         CN=Drydock local CA"))
            #expect(try run("lines", "curl").output == "export CURL_CA_BUNDLE=\(world.authority)\n")
            let again = try run("create")
            #expect(again.end == .exited(1) && again.errors.contains("there is a local authority in"))
            let shown = try Shell.run(Daemon.binary(), ["config", "show", "-c", world.home.configuration])
            for text in [shown.output, world.daemon.errors] { #expect(!text.contains(key.split(separator: "\n")[1])) }
        }
    }
}
