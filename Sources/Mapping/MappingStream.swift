// Maps a JSON text of any length while it arrives: arrays element by element, in memory that does not grow with it.

import Trees

/// Maps one document. Not shared; used on one thread at a time.
package final class MappingStream {
    private enum State: Equatable {
        /// A value follows; without a node no part of it is needed.
        case value(Int?)
        case valueOrEnd, name, nameOrEnd, commaOrEnd, done
        case colon(Int?)
        case reading(Purpose)
    }

    /// The purpose for which a value is read.
    private enum Purpose: Equatable {
        case nothing
        /// The value is used by the holder of this number when all of it has arrived.
        case hold(Int)
        /// The value is copied to the output as it arrives.
        case through
        /// The value is an element of the array of this slot.
        case element(Int)
    }

    /// An array or an object that is open.
    private struct Frame {
        let isObject: Bool
        let node: Int
        /// The number of the next element.
        var number = 0
        /// The slot that the array belongs to.
        var slot: Int?
        var isEmpty = true
    }

    private let outline: StreamOutline
    private let limit: Int
    // This object owns the memory, with the bytes that are not read yet, or held, and frees it in deinit.
    private var bytes: UnsafeMutablePointer<UInt8>
    private var capacity: Int
    private var count = 0
    private var position = 0
    /// The start of the held value; nil if none is held.
    private var pin: Int?
    private var hasBegun = false
    private var state = State.value(0)
    private var frames: [Frame] = []
    private var skipper = JSONTokenizer(depth: MappingPlan.depthLimit)
    private var output: [UInt8] = []
    private var hasMembers = false
    private var isRootThere = false
    private var seen: Set<Int> = []
    /// The values of objects that are written at the end; nil for those that are left out.
    private var made: [Int: [UInt8]?] = [:]
    private var written: Set<Int> = []
    private var held = 0

    /// - Parameter limit: the most bytes of one element, or of all held values.
    package init(_ plan: MappingPlan, limit: Int) {
        outline = StreamOutline(plan)
        self.limit = limit
        capacity = 16 * 1024
        bytes = .allocate(capacity: capacity)
    }

    deinit { bytes.deallocate() }

    /// Takes the output since the last call.
    package func takeOutput() -> [UInt8] {
        defer { output = [] }
        return output
    }

    /// Takes the next bytes of the document.
    /// - Throws: the reason why it cannot be mapped; nothing may be pushed after that.
    package func push(_ new: UnsafeRawBufferPointer) throws(MappingFailure) {
        let drop = min(pin ?? position, position)
        if drop > 0 {
            bytes.update(from: bytes + drop, count: count - drop)
            count -= drop
            position -= drop
            pin = pin.map { $0 - drop }
        }
        if count + new.count > capacity {
            capacity = max(capacity * 2, count + new.count)
            let room = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
            room.update(from: bytes, count: count)
            bytes.deallocate()
            bytes = room
        }
        if let base = new.bindMemory(to: UInt8.self).baseAddress {
            (bytes + count).update(from: base, count: new.count)
        }
        count += new.count
        try read(isLast: false)
        guard count - min(pin ?? position, position) <= limit else {
            throw named(
                MappingFailure("more than \(limit) bytes would have to be held; map the elements of an array with each")
            )
        }
    }

    /// Ends the document, which is complete.
    /// - Throws: the reason why it is not complete, or cannot be mapped.
    package func finish() throws(MappingFailure) {
        try read(isLast: true)
        guard state == .done else { throw .end }
        while position < count, bytes[position].isSpaceOfJSON { position += 1 }
        guard position == count else { throw .grammar }
        try writeRest()
    }

    // MARK: - Reading

    private func read(isLast: Bool) throws(MappingFailure) {
        if !hasBegun {
            let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
            if count > 0, bytes[0] == mark[0], count < 3, !isLast { return }
            if count >= 3, bytes[0] == mark[0], bytes[1] == mark[1], bytes[2] == mark[2] { position = 3 }
            if count > 0 { hasBegun = true }
        }
        while state != .done {
            if case .reading(let purpose) = state {
                let stop = try skip(isLast: isLast)
                if purpose == .through {
                    output += UnsafeBufferPointer(start: bytes + position, count: stop - position)
                }
                position = stop
                guard skipper.isDone else { return }
                try completed(purpose)
                pin = nil
                close()
                continue
            }
            while position < count, bytes[position].isSpaceOfJSON { position += 1 }
            guard position < count else { return }
            guard try step(bytes[position]) else { return }
        }
        while position < count, bytes[position].isSpaceOfJSON { position += 1 }
        guard position == count else { throw .grammar }
    }

    /// Skips on in the value that is being read.
    private func skip(isLast: Bool) throws(MappingFailure) -> Int {
        do throws(JSONFault) { return try skipper.advance(bytes, from: position, to: count, isLast: isLast) } catch {
            throw MappingFailure(error)
        }
    }

    /// The position after the string whose first quote is before `start`; nil if more bytes are needed.
    private func endOfText(_ start: Int) throws(MappingFailure) -> Int? {
        var position = start
        do throws(JSONFault) { return try JSONTokenizer.text(bytes, &position, count) ? position : nil } catch {
            throw MappingFailure(error)
        }
    }

    /// Takes one byte of structure.
    /// - Returns: false if more bytes are needed.
    private func step(_ byte: UInt8) throws(MappingFailure) -> Bool {
        switch state {
        case .valueOrEnd where byte == UInt8(ascii: "]"), .nameOrEnd where byte == UInt8(ascii: "}"):
            position += 1
            pop()
        case .valueOrEnd: try beginElement(byte)
        case .value(let node): try begin(byte, node)
        case .name, .nameOrEnd:
            guard byte == UInt8(ascii: "\"") else { throw .grammar }
            guard let stop = try endOfText(position + 1) else { return false }
            let name = UnsafeRawBufferPointer(start: bytes + position + 1, count: stop - position - 2)
            state = .colon(frames.last.flatMap { outline.tree.child($0.node, name: name) })
            position = stop
        case .colon(let node):
            guard byte == UInt8(ascii: ":") else { throw .grammar }
            position += 1
            state = .value(node)
        case .commaOrEnd:
            guard let frame = frames.last else { throw .grammar }
            position += 1
            if byte == UInt8(ascii: ",") {
                // No bracket may follow: it is refused as a value.
                state = frame.isObject ? .name : elementState()
            } else {
                guard byte == (frame.isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else { throw .grammar }
                pop()
            }
        case .reading, .done: break
        }
        return true
    }

    /// The state in which the next element of the array is read.
    private func elementState() -> State {
        guard let frame = frames.last else { return .value(nil) }
        return .value(frame.slot == nil ? outline.tree.child(frame.node, element: frame.number) : nil)
    }

    private func beginElement(_ byte: UInt8) throws(MappingFailure) {
        guard case .value(let node) = elementState() else { return }
        try begin(byte, node)
    }

    private func begin(_ byte: UInt8, _ node: Int?) throws(MappingFailure) {
        if let slot = frames.last?.slot { return startReading(.element(slot), isHeld: true) }
        guard let node else { return startReading(.nothing, isHeld: false) }
        // The last one of members with the same name counts, but the output of the first one has been sent.
        if let holder = outline.tree.nodes[node].below.first(where: seen.contains) {
            let name = outline.slots[outline.takers[holder][0]].name
            throw MappingFailure(keyPath: name, "the document has it twice, and is too long to look for the last one")
        }
        if node == outline.rootNode { isRootThere = byte != UInt8(ascii: "n") }
        let isOpening = byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[")
        guard let holder = outline.tree.nodes[node].slots.first else {
            let isWanted = isOpening && !outline.tree.nodes[node].children.isEmpty
            return isWanted
                ? open(byte, Frame(isObject: byte == UInt8(ascii: "{"), node: node))
                : startReading(.nothing, isHeld: false)
        }
        seen.insert(holder)
        guard let slot = outline.streamed(at: holder) else { return startReading(.hold(holder), isHeld: true) }
        switch outline.slots[slot].rule.shape {
        case .each where byte == UInt8(ascii: "["):
            writeLead(slot)
            output.append(UInt8(ascii: "["))
            var frame = Frame(isObject: false, node: node)
            frame.slot = slot
            open(byte, frame)
        case .same where isOpening:
            writeLead(slot)
            startReading(.through, isHeld: false)
        default: startReading(.hold(holder), isHeld: true)
        }
    }

    private func open(_ byte: UInt8, _ frame: Frame) {
        frames.append(frame)
        position += 1
        state = byte == UInt8(ascii: "{") ? .nameOrEnd : .valueOrEnd
    }

    private func startReading(_ purpose: Purpose, isHeld: Bool) {
        skipper.restart()
        pin = isHeld ? position : nil
        state = .reading(purpose)
    }

    private func pop() {
        if frames.removeLast().slot != nil { output.append(UInt8(ascii: "]")) }
        close()
    }

    /// Ends a value.
    private func close() {
        guard let last = frames.indices.last else {
            state = .done
            return
        }
        frames[last].number += 1
        state = .commaOrEnd
    }

    // MARK: - Writing

    private func completed(_ purpose: Purpose) throws(MappingFailure) {
        guard let pin else { return }
        let value = UnsafeRawBufferPointer(start: bytes + pin, count: position - pin)
        switch purpose {
        case .nothing, .through: break
        case .element(let slot):
            guard case .each(let rule) = outline.slots[slot].rule.shape, let last = frames.indices.last else { return }
            do throws(MappingFailure) {
                guard let made = try DocumentMapper.map(value, rule, isKnown: true, limit: limit * 8) else { return }
                if !frames[last].isEmpty { output.append(UInt8(ascii: ",")) }
                frames[last].isEmpty = false
                output += made
            } catch {
                throw error.within("[\(frames[last].number)]").within(outline.slots[slot].name)
            }
        case .hold(let holder):
            for slot in outline.takers[holder] {
                let about = outline.slots[slot]
                let result: [UInt8]?
                do throws(MappingFailure) {
                    result = try DocumentMapper.map(value, about.rule, along: about.inner, limit: limit * 8)
                } catch {
                    throw about.name.isEmpty ? error : error.within(about.name)
                }
                if about.isGathered {
                    held += result?.count ?? 0
                    guard held <= limit else {
                        throw MappingFailure(keyPath: about.name, "more than \(limit) bytes would have to be held")
                    }
                    made[slot] = .some(result)
                } else if let result {
                    writeLead(slot)
                    output += result
                } else {
                    written.insert(slot)
                }
            }
        }
    }

    private func writeLead(_ slot: Int) {
        written.insert(slot)
        writeLead(outline.slots[slot].lead)
    }

    private func writeLead(_ lead: [UInt8]) {
        guard outline.isObject else { return }
        output.append(UInt8(ascii: hasMembers ? "," : "{"))
        hasMembers = true
        output += lead
    }

    /// Writes the missing values, and the objects that are gathered from several paths.
    private func writeRest() throws(MappingFailure) {
        guard outline.isObject else {
            if !written.contains(0) { output += try outline.root.whereMissing() ?? JSONWriter.null }
            return
        }
        guard isRootThere else {
            output += try outline.root.whereMissing() ?? JSONWriter.null
            return
        }
        for piece in outline.pieces {
            switch piece {
            case .slot(let slot) where written.contains(slot): break
            case .slot(let slot):
                guard let value = try missing(slot) else { break }
                writeLead(slot)
                output += value
            case .group(let lead, let pieces):
                writeLead(lead)
                try writeGroup(pieces)
            }
        }
        output += Array((hasMembers ? "}" : "{}").utf8)
    }

    private func writeGroup(_ pieces: [StreamOutline.Piece]) throws(MappingFailure) {
        output.append(UInt8(ascii: "{"))
        var isFirst = true
        for piece in pieces {
            let (lead, value): ([UInt8], [UInt8]?)
            switch piece {
            case .slot(let slot):
                lead = outline.slots[slot].lead
                if let known = made[slot] { value = known } else { value = try missing(slot) }
            case .group(let inner, let pieces):
                if !isFirst { output.append(UInt8(ascii: ",")) }
                isFirst = false
                output += inner
                try writeGroup(pieces)
                continue
            }
            guard let value else { continue }
            if !isFirst { output.append(UInt8(ascii: ",")) }
            isFirst = false
            output += lead + value
        }
        output.append(UInt8(ascii: "}"))
    }

    private func missing(_ slot: Int) throws(MappingFailure) -> [UInt8]? {
        do throws(MappingFailure) { return try outline.slots[slot].rule.whereMissing() } catch {
            throw error.within(outline.slots[slot].name)
        }
    }

    /// The failure with the name of the value that is being read.
    private func named(_ failure: MappingFailure) -> MappingFailure {
        guard case .reading(let purpose) = state else { return failure }
        let slot: Int? =
            switch purpose {
            case .hold(let holder): outline.takers[holder].first
            case .element(let slot): slot
            case .nothing, .through: nil
            }
        return slot.map { failure.within(outline.slots[$0].name) } ?? failure
    }
}

@available(*, unavailable) extension MappingStream: Sendable {}

// MARK: - What is taken from the stream

/// The values that a streaming mapping takes from a document, and their forms: computed once, before the first byte.
/// Sendable: a value.
struct StreamOutline: Sendable {
    /// One value that is taken.
    struct Slot: Sendable {
        let rule: MappingRule
        /// The name in the mapped document.
        let name: String
        /// The name with its colon; empty at the root.
        let lead: [UInt8]
        /// The path to the value inside of a value that is held at a node above it; nil if it is not inside of one.
        let inner: PathTree?
        /// Whether the value belongs to an object that is written at the end.
        let isGathered: Bool
    }

    /// A member of the root, or of an object that is written at the end.
    indirect enum Piece: Sendable {
        case slot(Int)
        case group(lead: [UInt8], [Piece])
    }

    private(set) var slots: [Slot] = []
    private(set) var pieces: [Piece] = []
    /// The paths of the values that are taken, and the slots for each.
    let tree: PathTree
    let takers: [[Int]]
    /// The node of the value from which the root's members are taken; nil if no path leads through it.
    let rootNode: Int?
    let isObject: Bool
    let root: MappingRule

    init(_ plan: MappingPlan) {
        root = plan.root
        var found: [(path: MappingPath, rule: MappingRule, name: String, lead: [UInt8], isGathered: Bool)] = []
        func collect(_ members: [MappingRule.Member], _ base: MappingPath, _ outer: String) -> [Piece] {
            members.map { member in
                let name = outer.isEmpty ? member.name : "\(outer).\(member.name)"
                if case .object(let inner) = member.rule.shape, member.rule.from.names.isEmpty {
                    return .group(lead: member.lead, collect(inner, base, name))
                }
                found.append((base + member.rule.from, member.rule, name, member.lead, !outer.isEmpty))
                return .slot(found.count - 1)
            }
        }
        if case .object(let members) = root.shape {
            isObject = true
            pieces = collect(members, root.from, "")
        } else {
            isObject = false
            found = [(root.from, root, "", [], false)]
            pieces = [.slot(0)]
        }
        // A value inside of another one that is taken is found in that one.
        var holders: [MappingPath] = []
        var holderIndices: [Int] = []
        let paths = Set(found.map(\.path))
        for item in found {
            let names = item.path.names
            let length = (0...names.count).first { paths.contains(MappingPath(names: Array(names[..<$0]))) } ?? 0
            let holder = MappingPath(names: Array(names[..<length]))
            if !holders.contains(holder) { holders.append(holder) }
            holderIndices.append(holders.firstIndex(of: holder) ?? 0)
            let rest = MappingPath(names: Array(names[length...]))
            slots.append(
                Slot(
                    rule: item.rule,
                    name: item.name,
                    lead: item.lead,
                    inner: rest.names.isEmpty ? nil : PathTree([rest]),
                    isGathered: item.isGathered
                )
            )
        }
        let tree = PathTree(holders)
        self.tree = tree
        takers = holders.indices.map { holder in holderIndices.indices.filter { holderIndices[$0] == holder } }
        var node: Int? = 0
        for name in root.from.names {
            node = node.flatMap { node in tree.nodes[node].children.first { $0.name == name }?.node }
        }
        rootNode = node
    }

    /// The only slot for a holder, if its value need not be held as a whole; nil otherwise.
    func streamed(at holder: Int) -> Int? {
        guard takers[holder].count == 1, let slot = takers[holder].first, !slots[slot].isGathered,
            slots[slot].inner == nil
        else { return nil }
        return slot
    }
}
