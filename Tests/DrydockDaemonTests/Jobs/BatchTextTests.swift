// The texts of batches: lists as they are read, and how far a job is as a bar and as a sentence.

import DownloadCore
import ProxyServer
import TestSupport
import Testing

@testable import DrydockDaemon

@Suite struct BatchListTests {
    @Test("URLs, JSON lines, comments, empty lines and line ends of all kinds")
    func reads() throws {
        let text = """
            # first
            /a

              http://x/b\u{20}
            {"url":"/c","method":"POST","headers":{"X_A":"1","Accept":"*/*"},"body":"{}","force":true,"seed":false,"store":false}\r
            /d\r\n
            """
        let items = try BatchList.parse(text, name: "list").map(\.item)
        #expect(items.map(\.url) == ["/a", "http://x/b", "/c", "/d"])
        #expect(
            items[2]
                == BatchItem(
                    url: "/c",
                    method: "POST",
                    fields: [.init("Accept", "*/*"), .init("X_A", "1")],
                    body: Array("{}".utf8),
                    force: true,
                    seed: false,
                    store: false
                )
        )
        #expect(try BatchList.parse("", name: "list").isEmpty)
    }

    @Test(
        "what is neither is told with its position",
        arguments: [
            ("/a\n{\"url\":\"/b\",\"urll\":1}\n", "list:2: 'urll' is not known"),
            ("{\"method\":\"GET\"}", "list:1: 'url' is missing"), ("/a b", "list:1: '/a b' is not a URL"),
            ("{", "list:1: "), ("{\"url\":\"/a\",\"headers\":[]}", "list:1: "),
        ]
    )
    func refuses(_ text: String, _ message: String) {
        do throws(BatchList.Malformed) {
            _ = try BatchList.parse(text, name: "list")
            Issue.record("\(text) was taken")
        } catch {
            #expect(error.description.hasPrefix(message), "\(error)")
        }
    }

    @Test("what cannot be read is told with what the system says, what is no UTF-8 with its name")
    func unreadable() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("latin", [0xE9])
        for (path, message) in [
            (
                folder.file("none"),
                "cannot be read: No such file or directory; check that it exists, and its permissions"
            ),
            (folder.path, "cannot be read: Is a directory; check that it exists, and its permissions"),
            (file, "is not UTF-8; save it as UTF-8"),
        ] {
            let error = #expect(throws: BatchList.Malformed.self) { try BatchList.read(path) }
            #expect(error?.description == "\(path) \(message)")
        }
    }

    @Test("an order becomes the body of a request: an item's own field wins over that of all")
    func order() throws {
        var order = BatchOrder()
        order.urls = ["/a"]
        order.lists = [("list", "{\"url\":\"/b\",\"headers\":{\"X\":\"own\"}}")]
        order.headers = ["X": "all"]
        order.concurrency = 3
        order.onError = .cancelRest
        order.save = true
        let request = try AdminJSON.decode(AdminJobRequest.self, from: try order.body())
        #expect(request.items?.map(\.url) == ["/a", "/b"])
        #expect(request.items?.map(\.headers) == [["X": "all"], ["X": "own"]])
        #expect(request.concurrency == 3 && request.onError == .cancelRest && request.save == true)
    }
}

@Suite struct BatchProgressTests {
    private func progress(_ change: (inout BatchTotals) -> Void) -> BatchProgress {
        var totals = BatchTotals()
        (totals.items, totals.queued) = (10, 10)
        change(&totals)
        return BatchProgress(totals)
    }

    @Test("the bar tells the share of the bytes where all sizes are known, else that of the items")
    func bars() {
        let half = progress {
            ($0.queued, $0.running, $0.done, $0.failed) = (4, 1, 4, 1)
            ($0.bytes, $0.received, $0.remaining) = (4096, 1024, 3072)
        }
        #expect(half.share == 0.25)
        #expect(
            half.bar(columns: 120, seconds: 2, since: 0)
                == "[##########------------------------------]   25%  1.0 KiB of 4.0 KiB  5/10 items  1 failed  512 B/s  0:06 left"
        )
        #expect(
            half.bar(columns: 80, seconds: 0, since: 0)
                == "[#######----------------------]   25%  1.0 KiB of 4.0 KiB  5/10 items  1 failed"
        )
    }

    @Test("while sizes are looked for the bar tells how many items have been looked at")
    func checks() {
        let some = progress { ($0.done, $0.queued, $0.failed, $0.checked, $0.remaining) = (1, 8, 1, 5, 2048) }
        #expect(
            some.checkBar(columns: 120)
                == "[####################--------------------]   50%  5/10 items  2.0 KiB to download  1 failed"
        )
        #expect(some.checkSentence == "5 of 10 items looked at, 2.0 KiB to download, 1 failed")
        #expect(some.checkBar(columns: 20).count == 19)
    }

    @Test("what is over tells what came, and what is cancelled counts for nothing")
    func over() {
        let cancelled = progress {
            ($0.queued, $0.done, $0.cancelled) = (0, 4, 6)
            ($0.bytes, $0.received) = (1024, 1024)
        }
        #expect(cancelled.sentence == "4 of 10 items, 1.0 KiB, 6 cancelled")
        #expect(cancelled.share == 0.4)
        #expect(
            cancelled.bar(columns: 120, seconds: 0, since: 0)
                == "[################------------------------]   40%  1.0 KiB  4/10 items  6 cancelled"
        )
        let done = progress { ($0.queued, $0.done, $0.bytes, $0.received) = (0, 10, 100, 100) }
        #expect(done.sentence == "10 of 10 items, 100 B")
    }

    @Test("a narrow terminal gets what fits, and never more than a line", arguments: [0, 1, 5, 20, 40, 60, 80, 200])
    func narrow(_ columns: Int) {
        let some = progress {
            ($0.queued, $0.done, $0.bytes, $0.received, $0.remaining) = (5, 5, 1 << 40, 1 << 39, 1 << 39)
        }
        #expect(some.bar(columns: columns, seconds: 10, since: 0).count <= max(0, columns - 1))
    }

    @Test(
        "sizes have one decimal, to the nearest tenth, and to the even one of two that are as near",
        arguments: [
            (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1075, "1.0 KiB"), (1076, "1.1 KiB"), (1280, "1.2 KiB"),
            (1792, "1.8 KiB"), (10239, "10.0 KiB"), (1_048_524, "1023.9 KiB"), (1_048_525, "1024.0 KiB"),
            (1_048_575, "1024.0 KiB"), (1_048_576, "1.0 MiB"), (1_310_720, "1.2 MiB"), (1 << 50, "1024.0 TiB"),
            (.max, "8388608.0 TiB"), (-2048, "-2048 B"),
        ]
    )
    func sizes(_ bytes: Int64, _ text: String) { #expect(BatchProgress.size(bytes) == text) }

    @Test(
        "what is left is in minutes, and in hours from an hour on",
        arguments: [
            (0, "0:00"), (5.2, "0:06"), (59.1, "1:00"), (615, "10:15"), (3599, "59:59"), (3600, "1:00:00"),
            (36_061, "10:01:01"), (1e9, "99:59:59"), (.infinity, "99:59:59"),
        ]
    )
    func times(_ seconds: Double, _ text: String) { #expect(BatchProgress.time(seconds) == text) }

    @Test("shares take three columns", arguments: [(0, "  0%"), (10, " 10%"), (100, "100%")])
    func percents(_ done: Int, _ text: String) {
        let some = progress { ($0.items, $0.queued, $0.done, $0.checked) = (100, 100 - done, done, done) }
        #expect(some.bar(columns: 40, seconds: 0, since: 0).contains("]  \(text)  \(done)/100 items"))
        #expect(some.checkBar(columns: 40).contains("]  \(text)  \(done)/100 items"))
    }

    @Test("an empty batch is done, an unknown size makes the items count")
    func shares() {
        #expect(progress { $0.items = 0 }.share == 1)
        let unknown = progress { ($0.queued, $0.done, $0.unknownSize, $0.bytes, $0.remaining) = (5, 5, 1, 100, 90) }
        #expect(unknown.share == 0.5)
        #expect(progress { ($0.queued, $0.done, $0.bytes, $0.received) = (0, 10, 100, 100) }.share == 1)
    }

    @Test("sentences name what there is, and leave out what there is not")
    func sentences() {
        let all = progress {
            ($0.queued, $0.done, $0.failed, $0.cancelled) = (2, 5, 2, 1)
            ($0.duplicates, $0.valid, $0.notStored, $0.unknownSize) = (1, 1, 1, 1)
            ($0.bytes, $0.received, $0.remaining) = (3000, 1000, 2000)
        }
        #expect(all.sentence == "7 of 10 items, 1000 B of 2.9 KiB, 1 of unknown size, 1 cancelled, 2 failed")
        #expect(
            all.sizes
                == "10 items: 2 to download, 2.0 KiB and 1 of unknown size, 1 valid, 1 duplicate, 1 cancelled, 2 failed"
        )
        #expect(
            all.summary
                == "10 items: 3 downloaded, 1000 B (1 not stored), 1 valid, 2 not begun, 1 duplicate, 1 cancelled, 2 failed"
        )
        #expect(progress { $0.items = 1 }.sizes == "1 item: 10 to download, 0 B")
    }
}
