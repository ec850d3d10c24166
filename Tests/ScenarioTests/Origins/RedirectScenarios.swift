// Redirects of a real nginx, as curl sees them through the daemon: passed on, or followed and stored.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Redirects {
        private static func nginx() throws -> NginxOrigin {
            let nginx = try NginxOrigin(
                location: "add_header Cache-Control \"max-age=60\";",
                server: "location = /old { return 301 /new/page.html; } location = /loop { return 302 /loop; }"
            )
            try nginx.write("new/page.html", "<p>Here.</p>")
            return nginx
        }

        @Test func aRedirectIsFollowedAndStored() throws {
            let nginx = try Self.nginx()
            let daemon = try Daemon(services(service("web", nginx.url, "redirects: follow")))
            let url = "http://127.0.0.1:\(daemon.port)/web/old"
            let arguments = ["-sS", "-w", " %{http_code} %{num_redirects}", "--noproxy", "*", "-L", url]
            for _ in 0..<2 { #expect(try Shell.must("curl", arguments) == "<p>Here.</p> 200 0") }
            #expect(try nginx.requests(path: "/old") == 1)
            #expect(try nginx.requests(path: "/new/page.html") == 1)
            let metrics = try RawClient(unix: daemon.home.adminSocket).exchange("/metrics").text
            #expect(metrics.contains("\ndrydock_redirects_followed_total 1\n"))
            let circle = try daemon.exchange("/web/loop")
            #expect(circle.status == 502)
            #expect(circle.field("Proxy-Status")?.contains("they lead round in a circle") == true)
        }

        @Test func aRedirectThatIsPassedOnLeadsBackHere() throws {
            let nginx = try Self.nginx()
            let daemon = try Daemon(services(service("web", nginx.url)))
            let url = "http://127.0.0.1:\(daemon.port)/web/old"
            let arguments = [
                "-sS", "-w", " %{http_code} %{num_redirects} %{url_effective}", "--noproxy", "*", "-L", url,
            ]
            let there = "http://127.0.0.1:\(daemon.port)/web/new/page.html"
            #expect(try Shell.must("curl", arguments) == "<p>Here.</p> 200 1 \(there)")
        }

        @Test func aPrefetchFollowsWhereTheServicePassesThemOn() throws {
            let nginx = try Self.nginx()
            let other = try NginxOrigin(
                server:
                    "location = /away { return 301 \(nginx.url)/old; } location = /none { return 302 http://127.0.0.1:1/x; }"
            )
            let daemon = try Daemon(services(service("web", nginx.url), service("other", other.url)))
            let run = try daemon.command("prefetch", "/other/away", "\(nginx.url)/old", "/other/none")
            #expect(!run.succeeded && run.errors.contains("3 of 3 items"), "\(run.report)")
            #expect(run.errors.contains("1 failed"), "\(run.report)")
            #expect(run.report.contains("leads to 127.0.0.1, an internal address"), "\(run.report)")
            #expect(try nginx.requests(path: "/new/page.html") == 1)
            // A client that follows the redirect finds its target.
            #expect(try daemon.exchange("/web/new/page.html").cacheStatus?.isHit == true)
        }
    }
}
