// What a request would download, where what is stored is stale and may be used all the same.

import DownloadCore
import EventLoop
import HTTPWire
import LoopSupport
import TestSupport
import Testing

@Suite("looking for what a request would download")
struct ProbeTests {
    private static func probe(_ rig: Rig, _ cacheControl: String) async -> Probe {
        let ask = rig.ask("/a", [("Cache-Control", cacheControl)])
        return await onLoop(rig.loops[0]) { loop in
            await rig.core.probe(ask, from: ScriptedSource(rig.origin), accepted: 200..<300, on: loop)
        }
    }

    @Test(
        "a stale response that the request accepts needs neither a download nor a check, as its answer shows",
        arguments: [("max-stale", true), ("only-if-cached, max-stale", true), ("max-stale=10", false)]
    )
    func acceptsStale(_ cacheControl: String, _ isAccepted: Bool) async throws {
        try await withRig { rig in
            rig.origin.answers { asked in
                let fields = [("Cache-Control", "max-age=10"), ("Content-Length", "5")]
                return asked.method == .head ? .headOnly(200, fields) : .whole(200, fields)
            }
            _ = await rig.get("/a")
            #expect(await rig.settle())
            rig.clock.advance(seconds: 1000)
            #expect(await Self.probe(rig, cacheControl) == (isAccepted ? .valid(length: 5) : .sized(5)))
            #expect(rig.origin.log.count { $0.method == .head } == (isAccepted ? 0 : 1))
            if isAccepted { #expect(await rig.get("/a", [("Cache-Control", cacheControl)]).text == "hello") }
            #expect(rig.origin.log.count { $0.method == .get } == 1)
        }
    }

    @Test("a stale response that needs a check is none for a request that asks nobody")
    func needsCheck() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "max-age=10")]) }
            _ = await rig.get("/a")
            #expect(await rig.settle())
            rig.clock.advance(seconds: 1000)
            let why = "the stored response needs a check, and the origin is not to be asked"
            #expect(await Self.probe(rig, "only-if-cached") == .failed(why, status: nil))
            #expect(rig.origin.log.count == 1)
        }
    }
}
