// Daemons that ask one another: in a chain they need no names, and in a circle they are found out.

import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Chain {
        private static func daemon(_ rest: DaemonSettings, at home: DaemonHome? = nil) throws -> Daemon {
            var settings = rest
            settings.name = "auto"
            return try Daemon(settings, at: home)
        }

        @Test func daemonsWithoutANameCanBeChained() throws {
            let origin = try ScriptedOrigin { request in
                .answer(to: request, fields: [("Cache-Control", "max-age=600")], request.field("Via") ?? "none")
            }
            let back = try Self.daemon(services(service("api", origin.url)))
            let front = try Self.daemon(services(service("api", "\(back.url)/api")))
            let answer = try front.exchange("/api/x")
            #expect(answer.status == 200, "\(answer.head)")
            let form = #/1\.1 (drydock-[0-9a-f]{8}), 1\.1 (drydock-[0-9a-f]{8})/#
            let names = try #require(answer.text.wholeMatch(of: form), "\(answer.text)")
            #expect(names.1 != names.2)
            let status = answer.head.all("Cache-Status").joined(separator: ", ")
            #expect(status.hasPrefix("\(names.2); ") && status.contains(", \(names.1); "), "\(status)")
            try front.restart()
            #expect(try front.exchange("/api/y").text == answer.text)
        }

        @Test func aCircleOfDaemonsIsA508() throws {
            let home = try DaemonHome()
            let back = try Self.daemon(services(service("api", "\(home.url)/api")))
            let front = try Self.daemon(services(service("api", "\(back.url)/api")), at: home)
            expectProblem(try front.exchange("/api/x"), 508)
            expectProblem(try back.exchange("/api/x"), 508)
        }
    }
}
