// Content that the delegate takes from the socket by itself: the same bytes, ends and errors as when it is read.

import EventLoop
import HTTPWire
import TestSupport
import Testing
import Upstream

@Suite struct MovingTests {
    @Test(arguments: [false, true]) func `content comes whole, and the connection is used again`(isPaused: Bool) throws
    {
        let origin = try ScriptedOrigin { _ in .pattern(1 << 20) }
        let rig = try Rig()
        defer { rig.close() }
        for number in 1...3 {
            let heard = rig.run(
                UpstreamRequest(url: origin.url),
                prepare: { recorder in
                    recorder.moves = { true }
                    guard isPaused else { return }
                    recorder.onBytes = { [loop = rig.loop, inside = rig.inside] _, _ in
                        loop.submit { _ in inside.transfers[number]?.resume() }
                        return .pause
                    }
                }
            )
            #expect(heard.isFinished && heard.bodyIsPattern)
            #expect(heard.bodyLength == 1 << 20)
            #expect(heard.moved > 0)
            #expect(heard.calls == "hbf")
        }
        #expect(origin.connections == 1)
    }

    @Test func `who does not want it now is given bytes, in order`() throws {
        let origin = try ScriptedOrigin { _ in .pattern(4 << 20) }
        let rig = try Rig()
        defer { rig.close() }
        let asked = Counter()
        let heard = rig.run(
            UpstreamRequest(url: origin.url),
            prepare: { recorder in
                recorder.moves = {
                    asked.add()
                    return asked.value % 3 == 0
                }
            }
        )
        #expect(heard.isFinished && heard.bodyIsPattern)
        #expect(heard.bodyLength == 4 << 20)
        #expect(heard.moved > 0 && heard.moved < 4 << 20)
    }

    @Test func `little content, chunks and content up to the end are never asked for`() throws {
        let origin = try ScriptedOrigin { request in
            switch request.target {
            case "/little": .pattern(30_000)
            case "/chunks": .chunked([String(repeating: "a", count: 100_000)])
            default: OriginReply([OriginReply.head(200, fields: []), .pattern(100_000, from: 0), .cut])
            }
        }
        let rig = try Rig()
        defer { rig.close() }
        for (target, length) in [("/little", 30_000), ("/chunks", 100_000), ("/end", 100_000)] {
            let heard = rig.run(UpstreamRequest(url: origin.url + target), prepare: { $0.moves = { true } })
            #expect(heard.isFinished)
            #expect(heard.bodyLength == length)
            #expect(heard.moved == 0)
        }
    }

    @Test func `what comes behind the content is no part of it, and the connection is not used again`() throws {
        let origin = try ScriptedOrigin { _ in
            var bytes = Array("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n".utf8)
            bytes += [UInt8](repeating: 97, count: 100_000) + Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".utf8)
            return OriginReply([.bytes(bytes)])
        }
        let rig = try Rig()
        defer { rig.close() }
        for connections in 1...2 {
            let heard = rig.run(UpstreamRequest(url: origin.url), prepare: { $0.moves = { true } })
            #expect(heard.isFinished)
            #expect(heard.bodyLength == 100_000)
            #expect(heard.moved > 0)
            #expect(origin.connections == connections)
        }
    }

    @Test func `content that is cut is a failure`() throws {
        let origin = try ScriptedOrigin { _ in
            OriginReply([
                OriginReply.head(200, fields: [("Content-Length", "200000")]), .pattern(100_000, from: 0), .cut,
            ])
        }
        let rig = try Rig()
        defer { rig.close() }
        let heard = rig.run(UpstreamRequest(url: origin.url), prepare: { $0.moves = { true } })
        #expect(!heard.isFinished && heard.bodyIsPattern)
        #expect(heard.bodyLength == 100_000)
        #expect(heard.error?.kind == .truncated)
    }

    @Test func `who ends the transfer while it takes content hears no more`() throws {
        let origin = try ScriptedOrigin { _ in .pattern(1 << 20) }
        let rig = try Rig()
        defer { rig.close() }
        let (heard, _) = rig.watch(UpstreamRequest(url: origin.url)) { recorder in
            recorder.moves = { true }
            recorder.onBytes = { transfer, heard in
                if heard.bodyLength > 1 << 17 { transfer.cancel() }
                return .continue
            }
        }
        #expect(heard.wait(120) { $0.bodyLength > 1 << 17 })
        #expect(rig.activeCount == 0)
        #expect(rig.connectionCount == 0)
        #expect(heard.read { !$0.isOver && $0.bodyIsPattern })
    }
}
