// The functions that libcurl calls: each recovers its handle and calls one method.

import CLibcurl
import EventLoop
import Glibc

enum CurlCallbacks {
    static func install(on raw: UnsafeMutableRawPointer, context: UnsafeMutableRawPointer, multi: CurlMulti) {
        c_curl_set_pointer(raw, CURLOPT_PRIVATE, context)
        c_curl_set_data_function(raw, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
            guard let handle = EasyHandle.of(context), let bytes else { return 0 }
            let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
            return handle.received(line: line) ? line.count : 0
        }
        c_curl_set_pointer(raw, CURLOPT_HEADERDATA, context)
        c_curl_set_data_function(raw, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            guard let handle = EasyHandle.of(context), let bytes else { return 0 }
            let body = UnsafeRawBufferPointer(start: bytes, count: size * count)
            return switch handle.received(body: body) {
            case .taken: body.count
            case .pause: Int(CURL_WRITEFUNC_PAUSE)
            // Any other number than the one given fails the transfer; of no bytes, one.
            case .refused: body.isEmpty ? 1 : 0
            }
        }
        c_curl_set_pointer(raw, CURLOPT_WRITEDATA, context)
        c_curl_set_data_function(raw, CURLOPT_READFUNCTION) { bytes, size, count, context in
            guard let handle = EasyHandle.of(context), !handle.wantsNoMore, let transfer = handle.transfer, let bytes
            else { return Int(CURL_READFUNC_ABORT) }
            return switch transfer.readBody(into: UnsafeMutableRawBufferPointer(start: bytes, count: size * count)) {
            case .bytes(let count): count
            case .wait: Int(CURL_READFUNC_PAUSE)
            case .end: 0
            case .failed: Int(CURL_READFUNC_ABORT)
            }
        }
        c_curl_set_pointer(raw, CURLOPT_READDATA, context)
        installConnectionCallbacks(on: raw, context: context, multi: multi)
    }

    private static func installConnectionCallbacks(
        on raw: UnsafeMutableRawPointer,
        context: UnsafeMutableRawPointer,
        multi: CurlMulti
    ) {
        c_curl_set_prereq_function(raw) { context, remote, local, remotePort, localPort in
            guard let handle = EasyHandle.of(context), let remote, let local else {
                return CURL_PREREQFUNC_ABORT
            }
            let name = ConnectionName(
                local: String(cString: local),
                localPort: localPort,
                remote: String(cString: remote),
                remotePort: remotePort
            )
            return handle.mayRequest(on: name) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
        }
        c_curl_set_pointer(raw, CURLOPT_PREREQDATA, context)
        c_curl_set_resolver_start_function(raw) { _, _, context in
            // Zero lets libcurl resolve by itself.
            EasyHandle.of(context)?.mayResolve() == true ? 0 : 1
        }
        c_curl_set_pointer(raw, CURLOPT_RESOLVER_START_DATA, context)
        c_curl_set_open_socket_function(raw) { context, _, address in
            guard let handle = EasyHandle.of(context), let address else { return CURL_SOCKET_BAD }
            return handle.mayConnect(to: address) ? handle.multi.openSocket(address.pointee) : CURL_SOCKET_BAD
        }
        c_curl_set_pointer(raw, CURLOPT_OPENSOCKETDATA, context)
        c_curl_set_close_socket_function(raw) { context, descriptor in
            // The multi's context, since connections outlive the handles that opened them.
            guard let context else { return Glibc.close(descriptor) }
            return Unmanaged<CurlMulti>.fromOpaque(context).takeUnretainedValue().closeSocket(descriptor)
        }
        c_curl_set_pointer(raw, CURLOPT_CLOSESOCKETDATA, Unmanaged.passUnretained(multi).toOpaque())
        c_curl_set_debug_function(raw) { _, kind, text, count, context in
            guard kind == CURLINFO_TEXT, let text, let handle = EasyHandle.of(context) else { return 0 }
            handle.logged(UnsafeRawBufferPointer(start: text, count: count))
            return 0
        }
        c_curl_set_pointer(raw, CURLOPT_DEBUGDATA, context)
    }
}
