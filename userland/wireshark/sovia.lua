-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
--
-- Wireshark dissector for AF_SOVIA: the messages of lanes (include/sovia/wire.h) over RoCE,
-- InfiniBand and iWARP, hellos in the connection manager's private data, and the rendezvous
-- over TCP (include/sovia/rendezvous.h).  For Wireshark 4.0 and later; see
-- Documentation/dissector.rst.
--
-- How messages get here
--	RoCE	The infiniband dissector offers the private data of each message of the connection
--		manager, and the payload of each packet of a queue pair.  It does not say which queue
--		pair, opcode or immediate data: field extractors do.  It does not reassemble
--		messages: unpack_packet() does.
--	iWARP	The DDP dissector reassembles messages, but with several of them in a TCP segment
--		it mixes them up.  And there is no list for the private data of MPA.  So a
--		postdissector takes both from the fields of MPA.
--
-- A header with a payload may be as long as payload without one: only the last packet of a
-- message, which has the immediate data or has none, tells what it is.  So messages are shown
-- in their last packet.  Only the first bytes of a message are kept.
--
-- A lane has state, so packets are read once, in their order, and the results are kept: see
-- once().

local sovia = Proto("sovia", "AF_SOVIA")
local rdv = Proto("sovia.rdv", "AF_SOVIA Rendezvous")
local iwarp = Proto("sovia.iwarp", "AF_SOVIA over iWARP")

-- ---- wire.h ----

local WIRE_MAGIC, WIRE_VERSION = 0x534f5641, 5
local HDR_LEN, CONN_LEN, HELLO_LEN, REJECT_LEN = 32, 32, 56, 8
local WINDOW_MAX, PAYLOAD_MIN, PAYLOAD_MAX, LANES_MAX = 1024, 2048, 65536, 16
local HEAD_LEN = HDR_LEN + CONN_LEN -- all of a message that is looked at

-- As sovia_types of kmod/link/wire.c.
local TYPES = {
	[1] = { name = "DATA", ports = true, least = 1, more = true },
	[2] = { name = "ACK", least = 0, more = true },
	[3] = { name = "WAKEUP", ports = true, least = 0 },
	[4] = { name = "FIN", ports = true, least = 0 },
	[6] = { name = "CONN", ports = true, least = CONN_LEN },
	[7] = { name = "ACCEPT", ports = true, least = 0 },
	[8] = { name = "REFUSE", ports = true, least = 0 },
	[9] = { name = "RESET", ports = true, least = 0 },
	[10] = { name = "PROBE", least = 0 },
	[11] = { name = "URGENT", ports = true, least = 0 },
	[19] = { name = "PRESSURE", ports = true, least = 0 },
	[20] = { name = "RETURN", ports = true, least = 0 },
	[21] = { name = "PARK", least = 0 },
}
local DATA, ACK, CONN, ACCEPT, REFUSE, RESET = 1, 2, 6, 7, 8, 9

local CODES = {
	[0] = "NONE", "NO_LISTENER", "BUSY", "NO_MEMORY", "BAD_ADDRESS", "ABORT", "NO_SOCKET", "PROTOCOL",
	"NO_LINK", [10] = "USE_TCP", [11] = "DENIED", [12] = "NO_DIRECTION",
}
local CODE_COUNT = 13

local FLAGS = { { 0x0001, "ackreq", "ACKREQ" }, { 0x0002, "fin", "FIN" }, { 0x0004, "gone", "GONE" }, { 0x0040, "want", "WANT" } }

local TYPE_NAMES = {}
for number, type in pairs(TYPES) do
	TYPE_NAMES[number] = type.name
end

-- ---- rendezvous.h ----

local RDV_MAGIC, RDV_FRAMING = 0x534f5652, 1
local RDV_HDR_LEN, RDV_LEN_MAX = 8, 512
local RDV_HELLO_LEN, RDV_ANSWER_LEN, RDV_WAY_LEN, RDV_MAC_LEN = 120, 136, 40, 32
local RDV_WAYS, RDV_KEYS, RDV_WAY_CLAN = 4, 4, 4
local RDV_TYPES = { "HELLO", "ANSWER", "PING", "PONG", "CLOSE", "CONFIRM" }
local RDV_CODES = {
	[0] = "OK", "BUSY", "CROSSED", "NO_VERSION", "NO_KEY", "NAT", "SHARED", "NO_WAY", "DENIED", "LEAVING", "IDLE",
}
local RDV_WAY_TYPES = { "IB", "ROCE", "IWARP", "CLAN" }

-- ---- fields ----

local F, X = {}, {}

local function fields(proto, list)
	local all = {}
	for _, entry in ipairs(list) do
		local kind, name = entry[1], entry[2]
		F[name] = ProtoField[kind]("sovia." .. name, table.unpack(entry, 3))
		all[#all + 1] = F[name]
	end
	proto.fields = all
end

local function experts(proto, list)
	local all = {}
	for _, entry in ipairs(list) do
		local name, group, severity, text = table.unpack(entry)
		X[name] = ProtoExpert.new("sovia.expert." .. name, text, expert.group[group], expert.severity[severity])
		all[#all + 1] = X[name]
	end
	proto.experts = all
end

fields(sovia, {
	-- struct sovia_hdr
	{ "uint8", "version", "Version" },
	{ "uint8", "type", "Type", base.DEC, TYPE_NAMES },
	{ "uint16", "flags", "Flags", base.HEX },
	{ "bool", "flags.ackreq", "ACKREQ: acknowledge at once", 16, nil, 0x0001 },
	{ "bool", "flags.fin", "FIN: the stream ends after it", 16, nil, 0x0002 },
	{ "bool", "flags.gone", "GONE: its sender has closed", 16, nil, 0x0004 },
	{ "bool", "flags.want", "WANT: the last credit, and more is waiting", 16, nil, 0x0040 },
	{ "uint32", "len", "Payload length" },
	{ "uint32", "seq", "Number" },
	{ "uint32", "ack", "Acknowledges all below" },
	{ "uint16", "sport", "Source port" },
	{ "uint16", "dport", "Destination port" },
	{ "uint16", "port", "Port" },
	{ "uint32", "window", "Window (stream offset)" },
	{ "uint32", "ref", "Reference" },
	{ "uint32", "code", "Code", base.DEC, CODES },
	-- payload
	{ "bytes", "payload", "Payload" },
	{ "ipv6", "conn.saddr", "Address of the connecting socket" },
	{ "ipv6", "conn.daddr", "Address it connects to" },
	-- compact DATA
	{ "bool", "compact", "Compact" },
	{ "uint32", "imm", "Immediate data", base.HEX },
	{ "uint32", "imm.slot", "Slot", base.DEC, nil, 0xff000000 },
	{ "uint32", "imm.flags", "Flags", base.HEX, nil, 0x00f00000 },
	{ "uint32", "imm.check", "Check", base.HEX, nil, 0x000ff800 },
	{ "uint32", "imm.ack", "Acknowledges all below, lower bits", base.DEC, nil, 0x000007ff },
	-- struct sovia_hello
	{ "uint32", "hello.magic", "Magic", base.HEX },
	{ "uint8", "hello.version", "Version" },
	{ "uint8", "hello.lane", "Lane" },
	{ "uint16", "hello.window", "Window (messages)" },
	{ "uint32", "hello.payload", "Largest payload" },
	{ "uint32", "hello.rx_next", "Expects next" },
	{ "uint64", "hello.id", "Id of the sender's end", base.HEX },
	{ "uint64", "hello.peer_id", "Id of the receiver's end", base.HEX },
	{ "uint32", "hello.generation", "Generation" },
	{ "uint32", "hello.zero", "Zero", base.HEX },
	{ "bytes", "hello.mac", "MAC" },
	-- struct sovia_reject
	{ "uint32", "reject.magic", "Magic", base.HEX },
	{ "uint32", "reject.code", "Code", base.DEC, CODES },
	-- what the dissector adds
	{ "string", "cm", "Connection manager" },
	{ "uint32", "in_flight", "Messages not acknowledged, with this one" },
	{ "bool", "resent", "Sent before, on a lane that has been lost" },
	{ "bool", "repeated", "Packet repeated by the transport" },
	{ "framenum", "whole_in", "Message is complete in", base.NONE },
	{ "framenum", "part", "Begins in", base.NONE },
	{ "framenum", "answer_in", "Answer in", base.NONE, frametype.RESPONSE },
	{ "framenum", "request_in", "Answers", base.NONE, frametype.REQUEST },
	{ "relative_time", "time", "Time from request to answer" },
})

fields(rdv, {
	-- struct sovia_rdv_hdr
	{ "uint32", "rdv.magic", "Magic", base.HEX },
	{ "uint8", "rdv.type", "Type", base.DEC, RDV_TYPES },
	{ "uint8", "rdv.framing", "Framing" },
	{ "uint16", "rdv.len", "Length" },
	-- struct sovia_rdv_hello
	{ "uint8", "rdv.version_min", "Oldest version" },
	{ "uint8", "rdv.version_max", "Newest version" },
	{ "uint16", "rdv.flags", "Flags", base.HEX },
	{ "bool", "rdv.flags.again", "AGAIN: another anchor, the same secret", 16, nil, 0x0001 },
	{ "bool", "rdv.flags.join", "JOIN: the other direction, too", 16, nil, 0x0002 },
	{ "uint8", "rdv.nways", "Number of ways" },
	{ "uint8", "rdv.nkeys", "Number of keys" },
	{ "uint16", "rdv.zero", "Zero", base.HEX },
	{ "uint64", "rdv.features", "Features", base.HEX },
	{ "bool", "rdv.features.trial", "TRIAL: lanes are tried", 8, nil, 0x01 },
	{ "bool", "rdv.features.return", "RETURN: PRESSURE and RETURN", 8, nil, 0x02 },
	{ "bool", "rdv.features.grow", "GROW: windows of lanes grow", 8, nil, 0x04 },
	{ "bool", "rdv.features.park", "PARK: idle links are parked", 8, nil, 0x08 },
	{ "bytes", "rdv.instance", "Instance" },
	{ "ipv6", "rdv.saddr", "Sender's address" },
	{ "ipv6", "rdv.daddr", "Receiver's address" },
	{ "bytes", "rdv.nonce", "Nonce" },
	{ "uint16", "rdv.window", "Window (messages)" },
	{ "uint16", "rdv.lanes", "Lanes" },
	{ "uint32", "rdv.payload", "Largest payload" },
	{ "uint32", "rdv.early", "Bytes that CONN may bring" },
	{ "uint16", "rdv.reads", "One-sided READs at once" },
	{ "uint16", "rdv.rmem", "One-sided requests taken" },
	-- struct sovia_rdv_way, struct sovia_rdv_clan
	{ "uint8", "rdv.way.type", "Type", base.DEC, RDV_WAY_TYPES },
	{ "uint8", "rdv.way.gid_type", "GID type" },
	{ "uint16", "rdv.way.flags", "Flags", base.HEX },
	{ "uint16", "rdv.way.pkey", "P_Key", base.HEX },
	{ "uint16", "rdv.way.mtu", "MTU" },
	{ "bytes", "rdv.way.gid", "GID" },
	{ "ipv6", "rdv.way.addr", "Address" },
	{ "bytes", "rdv.clan.uuid", "Memory" },
	{ "uint32", "rdv.clan.number", "Node" },
	{ "uint32", "rdv.clan.generation", "Generation" },
	{ "bytes", "rdv.clan.zero", "Zero" },
	-- struct sovia_rdv_answer, _ping, _close
	{ "uint16", "rdv.code", "Code", base.DEC, RDV_CODES },
	{ "uint32", "rdv.retry_ms", "Again after (ms)" },
	{ "uint64", "rdv.key", "Key", base.HEX },
	{ "uint64", "rdv.number", "Number", base.HEX },
	{ "bytes", "rdv.mac", "MAC" },
	-- what the dissector adds
	{ "framenum", "rdv.answer_in", "Answer in", base.NONE, frametype.RESPONSE },
	{ "framenum", "rdv.request_in", "Answers", base.NONE, frametype.REQUEST },
	{ "relative_time", "rdv.time", "Time from request to answer" },
})

experts(sovia, {
	{ "version", "MALFORMED", "ERROR", "Another version than agreed on" },
	{ "type", "MALFORMED", "ERROR", "Unknown type" },
	{ "length", "MALFORMED", "ERROR", "Bad length" },
	{ "ports", "MALFORMED", "ERROR", "Ports missing, or where none belong" },
	{ "slot", "MALFORMED", "ERROR", "Compact DATA without a header before" },
	{ "hello", "MALFORMED", "ERROR", "Hello with invalid values" },
	{ "sequence", "SEQUENCE", "WARN", "Number out of sequence" },
	{ "ack", "SEQUENCE", "WARN", "Acknowledges what was not sent" },
	{ "unknown", "UNDECODED", "NOTE", "Flag or code that this dissector does not know" },
	{ "refused", "RESPONSE_CODE", "NOTE", "Refused, rejected or reset" },
	{ "cut", "UNDECODED", "NOTE", "Not captured completely" },
	{ "missing", "SEQUENCE", "NOTE", "Packets before this one were lost or not captured" },
})
experts(rdv, {
	{ "rdv", "MALFORMED", "ERROR", "Malformed rendezvous" },
	{ "rdv_refused", "RESPONSE_CODE", "NOTE", "No link" },
})

sovia.prefs.service = Pref.uint("Service port", 299, "rdma_cm port of the service (parameter service_port)")
sovia.prefs.unknown = Pref.bool("Find lanes without their set-up", true,
	"Take a packet for a message if it is one in every respect, although its queue pair's set-up was not captured")
rdv.prefs.port = Pref.uint("Rendezvous port", 298, "TCP port of the rendezvous (parameter port)")

-- What other dissectors have found in the packet: the last one, as outer headers come first.
local function extractor(name)
	local extract = Field.new(name)
	return function()
		local found = { extract() }
		return found[#found]
	end
end

local GET = {}
for key, name in pairs({
	ip_src = "ip.src", ip_dst = "ip.dst", ipv6_src = "ipv6.src", ipv6_dst = "ipv6.dst", stream = "tcp.stream",
	opcode = "infiniband.bth.opcode", pad = "infiniband.bth.padcnt", qp = "infiniband.bth.destqp",
	psn = "infiniband.bth.psn", imm = "infiniband.immdt",
	service = "infiniband.cm.req.serviceid",
	req = "infiniband.cm.req", req_qp = "infiniband.cm.req.localqpn", req_psn = "infiniband.cm.req.startpsn",
	rep = "infiniband.cm.rep", rep_to = "infiniband.cm.rep.remotecommid",
	rep_qp = "infiniband.cm.rep.localqpn", rep_psn = "infiniband.cm.rep.startpsn",
	rej = "infiniband.cm.rej.localcommid", rej_to = "infiniband.cm.rej.remotecommid", rej_reason = "infiniband.cm.rej.reason",
	rtu = "infiniband.cm.rtu.localcommid", rtu_to = "infiniband.cm.rtu.remotecommid",
	dreq = "infiniband.cm.dreq.localcommid", dreq_to = "infiniband.cm.dreq.remotecommid",
	drep = "infiniband.cm.drsp.localcommid", drep_to = "infiniband.cm.drsp.remotecommid",
	mpa_req = "iwarp_mpa.key.req", mpa_rep = "iwarp_mpa.key.rep", mpa_rejected = "iwarp_mpa.rej_flag",
	mpa_flags = "iwarp_mpa.res", mpa_private = "iwarp_mpa.privatedata", mpa_markers = "iwarp_mpa.markers",
}) do
	GET[key] = extractor(name)
end
local all_fpdus = Field.new("iwarp_mpa.fpdu")

local function get(key)
	local found = GET[key]()
	return found and found.value
end

-- ---- state ----

-- Of a capture file:
--	ways	by address and queue pair, or TCP stream and port: the direction of a lane that leads
--		there; false if it is another service's
--	cm	by address and the connection manager's number there: the VI
--	ends	by id: an end of a link, which may have one VI after the other
--	known	by frame: what once() has found
local ways, cm, ends, streams, known

function sovia.init()
	ways, cm, ends, streams, known = {}, {}, {}, {}, {}
end

local function before(a, b) return (a - b) % 0x100000000 >= 0x80000000 end

-- What one end of a VI sends.
--	peer	what the other end sends
--	from	the end of the link; its requests are answered over any VI
--	packet	number of the next packet (PSN) or message (MSN)
--	seq	number of the next message, nil if not known
--	acked	what it has acknowledged
--	slots	ports of compact DATA
--	whole	all has been captured since the set-up
--	payload	what the other end takes
--	part	the message whose packets arrive
local function new_direction()
	return { from = { conns = {} }, slots = {}, payload = PAYLOAD_MAX, version = WIRE_VERSION }
end

local function new_vi()
	local vi = { asker = new_direction(), answerer = new_direction() }
	vi.asker.peer, vi.answerer.peer = vi.answerer, vi.asker
	return vi
end

-- One who has sent a hello says which message it takes next, and how long it may be.
local function introduce(direction, hello)
	ends[hello.id] = ends[hello.id] or { conns = {} }
	direction.from = ends[hello.id]
	direction.version = hello.version
	direction.acked = hello.rx_next
	direction.peer.seq = hello.rx_next
	direction.peer.payload = hello.payload
end

-- What read() returns for a frame, which is called once for each, in their order.  tshark -2
-- has no fields in its first pass, when read() returns nil.
local function once(pinfo, read)
	local found = known[pinfo.number]
	if not found then
		found = read()
		known[pinfo.number] = found
	end
	return found
end

-- ---- messages ----

local function complain(msg, what, text)
	msg.bad[#msg.bad + 1] = { X[what], text }
end

-- Splits the head of a message; nil if it is too short.
local function split_header(head)
	if #head < HDR_LEN then
		return nil
	end
	local hdr = {}
	hdr.version, hdr.type, hdr.flags, hdr.len, hdr.seq, hdr.ack, hdr.sport, hdr.dport, hdr.window, hdr.ref, hdr.code =
		Struct.unpack(">BBI2I4I4I4I2I2I4I4I4", head)
	return hdr
end

-- As sovia_msg_parse(): the first reason not to take it, and nil if there is none.
local function header_fault(hdr, total, version, payload)
	local type = TYPES[hdr.type]
	if hdr.version ~= version then
		return "version"
	elseif not type then
		return "type"
	elseif hdr.len ~= total - HDR_LEN then
		return "length", string.format("Length is %d, and %d bytes follow the header", hdr.len, total - HDR_LEN)
	elseif hdr.len < type.least or hdr.len > (type.more and payload or type.least) then
		return "length", string.format("%s must not have %d bytes of payload", type.name, hdr.len)
	end
	local some, both = hdr.sport ~= 0 or hdr.dport ~= 0, hdr.sport ~= 0 and hdr.dport ~= 0
	if type.ports and not both or not type.ports and some then
		return "ports"
	end
	return nil
end

local function has_flag(flags, bit) return flags % (2 * bit) >= bit end

local function flag_names(flags)
	local names, rest = "", flags
	for _, flag in ipairs(FLAGS) do
		if has_flag(flags, flag[1]) then
			names = names .. " " .. flag[3]
			rest = rest - flag[1]
		end
	end
	return names, rest
end

local function slot_of(sport, dport)
	local slot = 0
	for bit = 0, 7 do
		if has_flag(sport, 2 ^ bit) ~= has_flag(dport, 2 ^ bit) then
			slot = slot + 2 ^ bit
		end
	end
	return slot
end

-- Sequence numbers, of which those of a retransmission after a recovery are old.
local function account(direction, msg)
	local hdr, from, peer = msg.hdr, direction.from, direction.peer
	local counts = hdr.type ~= ACK
	if direction.seq and hdr.seq ~= direction.seq then
		complain(msg, "sequence", string.format("Number %d, expected %d", hdr.seq, direction.seq))
	end
	direction.seq = (hdr.seq + (counts and 1 or 0)) % 0x100000000
	if counts then
		msg.resent = from.next and before(hdr.seq, from.next)
		from.next = msg.resent and from.next or direction.seq
	end
	if peer and peer.seq and before(peer.seq, hdr.ack) then
		complain(msg, "ack", string.format("Acknowledges %d, and the next number is %d", hdr.ack, peer.seq))
	elseif not direction.acked or before(direction.acked, hdr.ack) then
		direction.acked = hdr.ack
	end
	if peer and peer.acked then
		msg.in_flight = (direction.seq - peer.acked) % 0x100000000
	end
end

-- Requests and their answers, which name the number of the request.
local function match(direction, msg)
	local hdr, peer = msg.hdr, direction.peer
	if hdr.type == CONN then
		direction.from.conns[hdr.seq] = msg
	elseif hdr.type == ACCEPT or hdr.type == REFUSE then
		local request = peer and peer.from.conns[hdr.ref]
		if request then
			msg.request = request
			request.answer = request.answer or msg
		end
	end
end

local function read_header(direction, msg)
	local hdr = split_header(msg.head)
	if not hdr then
		-- a capture with short packets has a part of it
		complain(msg, msg.total < HDR_LEN and "length" or "cut")
		direction.seq, direction.whole = nil, false
		return
	end
	msg.hdr = hdr
	local fault, text = header_fault(hdr, msg.total, direction.version, direction.payload)
	if fault then
		complain(msg, fault, text)
		return
	end
	local _, rest = flag_names(hdr.flags)
	if rest ~= 0 or hdr.code >= CODE_COUNT then
		complain(msg, "unknown")
	end
	if hdr.type == DATA then
		direction.slots[slot_of(hdr.sport, hdr.dport)] = { hdr.sport, hdr.dport }
	end
	account(direction, msg)
	match(direction, msg)
end

-- As sovia_imm_parse().
local function read_compact(direction, msg)
	local imm, seq = msg.imm, direction.seq
	local ports = direction.slots[math.floor(imm / 0x1000000)]
	local hdr = { type = DATA, flags = math.floor(imm / 0x100000) % 16, len = msg.total }
	msg.hdr = hdr
	if msg.total == 0 or msg.total > direction.payload then
		complain(msg, "length")
		return
	elseif ports then
		hdr.sport, hdr.dport = ports[1], ports[2]
	elseif direction.whole then
		complain(msg, "slot")
	end
	if not seq or not direction.acked then
		return
	end
	local check = seq + math.floor(msg.total / 256) * 4
	hdr.seq = (seq + (math.floor(imm / 0x800) - check) % 0x200) % 0x100000000
	hdr.ack = (direction.acked + (imm - direction.acked) % 0x800) % 0x100000000
	account(direction, msg)
end

local function read_message(direction, part, imm)
	local msg = { head = part.head, total = part.total, imm = imm, frames = part.frames, at = part.at, bad = {} }
	if part.gap then
		complain(msg, "missing")
	end
	if imm then
		read_compact(direction, msg)
	else
		read_header(direction, msg)
	end
	return msg
end

-- Is a packet the next one?  The transport repeats packets from one that was lost on; what came
-- after that was not taken.
local function next_packet(direction, number, modulus)
	local ahead = direction.packet and (number - direction.packet) % modulus or 0
	if direction.lost and number == direction.lost.packet then
		direction.seq, direction.lost = direction.lost.seq, nil
	elseif ahead >= modulus / 2 then
		return false
	elseif ahead > 0 then
		direction.lost = direction.lost or { packet = direction.packet, seq = direction.seq }
		direction.seq, direction.whole, direction.part = nil, false, nil
		direction.gap = true
	end
	return true
end

-- A packet of a lane; returns what to show:
--	msg	a message, which it completes
--	part	a part of a message
--	repeated	it has been here before
--	gap	there should have been others before
local function take_packet(direction, packet)
	if not next_packet(direction, packet.number, packet.modulus) then
		return { repeated = true }
	end
	direction.packet = (packet.number + packet.step) % packet.modulus
	local found = { gap = direction.gap }
	direction.gap = nil
	if packet.first then
		direction.part = { head = "", total = 0, frames = {} }
	end
	local part = direction.part
	if not part then
		-- its beginning was not captured
		found.gap = true
		return found
	end
	if #part.head == part.total and #part.head < HEAD_LEN then
		part.head = part.head .. packet.bytes:sub(1, HEAD_LEN - #part.head)
	end
	part.total = part.total + packet.len
	part.frames[#part.frames + 1] = packet.frame
	part.at = packet.at
	found.part = part
	if packet.last then
		direction.part = nil
		part.gap = found.gap
		found.msg = read_message(direction, part, packet.imm)
		part.msg = found.msg
	end
	return found
end

-- ---- showing messages ----

local function generated(tree, field, value)
	if value ~= nil then
		tree:add(field, value):set_generated()
	end
end

local function show_time(tree, field, from, to)
	local seconds = to - from
	local whole = math.floor(seconds)
	tree:add(field, NSTime.new(whole, math.floor((seconds - whole) * 1e9))):set_generated()
end

-- Of a request or an answer: where the other one is.
local function show_match(tree, msg, prefix)
	if msg.answer then
		generated(tree, F[prefix .. "answer_in"], msg.answer.frame or msg.answer.frames[#msg.answer.frames])
	elseif msg.request then
		local request = msg.request
		generated(tree, F[prefix .. "request_in"], request.frame or request.frames[#request.frames])
		show_time(tree, F[prefix .. "time"], request.at, msg.at)
	end
end

local function show_ports(tree, hdr, add)
	add("sport", hdr.sport)
	add("dport", hdr.dport)
	for _, port in ipairs({ hdr.sport, hdr.dport }) do
		if port ~= 0 then
			tree:add(F.port, port):set_hidden()
		end
	end
end

local function show_bits(tree, flags, prefix, list, range)
	for _, flag in ipairs(list) do
		if range then
			tree:add(F[prefix .. flag[2]], range)
		else
			generated(tree, F[prefix .. flag[2]], flags)
		end
	end
end

local REF_TEXT = {
	[ACK] = " (messages that its sender takes unacknowledged)",
	[ACCEPT] = " (number of the CONN)",
	[REFUSE] = " (number of the CONN)",
	[11] = " (offset of the urgent byte)",
	[20] = " (offset up to which its sender may send)",
}

-- Adds the fields of struct sovia_hdr in tvb.
local function show_header(tree, tvb, hdr)
	local function add(name, offset, len) return tree:add(F[name], tvb(offset, len)) end
	add("version", 0, 1)
	add("type", 1, 1)
	show_bits(add("flags", 2, 2):append_text(flag_names(hdr.flags)), hdr.flags, "flags.", FLAGS, tvb(2, 2))
	add("len", 4, 4)
	add("seq", 8, 4)
	add("ack", 12, 4)
	show_ports(tree, hdr, function(name)
		add(name, name == "sport" and 16 or 18, 2)
	end)
	add("window", 20, 4)
	add("ref", 24, 4):append_text(REF_TEXT[hdr.type] or "")
	add("code", 28, 4)
end

-- What stands for the header of compact DATA.
local function show_compact(tree, hdr, range)
	generated(tree, F.compact, true)
	if range then
		local item = tree:add(F.imm, range)
		for _, name in ipairs({ "slot", "flags", "check", "ack" }) do
			item:add(F["imm." .. name], range)
		end
	end
	generated(tree, F.type, DATA)
	local flags = tree:add(F.flags, hdr.flags):append_text(flag_names(hdr.flags))
	flags:set_generated()
	show_bits(flags, hdr.flags, "flags.", FLAGS)
	generated(tree, F.len, hdr.len)
	generated(tree, F.seq, hdr.seq)
	generated(tree, F.ack, hdr.ack)
	if hdr.sport then
		show_ports(tree, hdr, function(name, value)
			generated(tree, F[name], value)
		end)
	end
end

local function summary(msg)
	local hdr = msg.hdr
	if not hdr then
		return "not a message"
	end
	local text = TYPE_NAMES[hdr.type] or string.format("type %d", hdr.type)
	if hdr.sport and hdr.sport + hdr.dport > 0 then
		text = string.format("%s %d → %d", text, hdr.sport, hdr.dport)
	end
	if hdr.type == REFUSE or hdr.type == RESET then
		text = text .. " " .. (CODES[hdr.code] or hdr.code)
	end
	text = text .. flag_names(hdr.flags)
	for _, name in ipairs({ "seq", "ack", "len" }) do
		if hdr[name] and not (name == "len" and hdr.len == 0) then
			text = string.format("%s %s=%d", text, name, hdr[name])
		end
	end
	if hdr.type == ACK and hdr.ref > 0 then
		text = string.format("%s takes=%d", text, hdr.ref)
	end
	return text .. (msg.imm and " compact" or "")
end

local function show_complaints(tree, msg)
	for _, bad in ipairs(msg.bad) do
		if bad[2] then
			tree:add_proto_expert_info(bad[1], bad[2])
		else
			tree:add_proto_expert_info(bad[1])
		end
	end
	local hdr = msg.hdr
	if hdr and (hdr.type == REFUSE or hdr.type == RESET) then
		local text = string.format("%s: %s", TYPE_NAMES[hdr.type], CODES[hdr.code] or hdr.code)
		tree:add_proto_expert_info(X.refused, text)
	end
end

local function show_body(tree, msg, tvb)
	local hdr, at = msg.hdr, msg.imm and 0 or HDR_LEN
	if tvb:len() <= at then
		return
	elseif hdr.type == CONN and tvb:len() >= HEAD_LEN then
		tree:add(F["conn.saddr"], tvb(HDR_LEN, 16))
		tree:add(F["conn.daddr"], tvb(HDR_LEN + 16, 16))
	elseif #msg.frames == 1 then
		tree:add(F.payload, tvb(at))
	end
end

-- A message that ends in this packet, whose bytes are in tvb.
local function show_message(tree, msg, tvb, imm)
	local head = tvb
	if #msg.frames > 1 then
		generated(tree, F.part, msg.frames[1])
		head = ByteArray.new(msg.head, true):tvb("Beginning of an AF_SOVIA message")
	end
	tree:append_text(", " .. summary(msg))
	if msg.hdr then
		if msg.imm then
			show_compact(tree, msg.hdr, imm)
		else
			show_header(tree, head, msg.hdr)
		end
		show_body(tree, msg, head)
		generated(tree, F.in_flight, msg.in_flight)
		generated(tree, F.resent, msg.resent or nil)
		show_match(tree, msg, "")
	end
	show_complaints(tree, msg)
end

-- What take_packet() has found; returns a line for the Info column.
local function show_packet(root, found, tvb, imm)
	local tree = root:add(sovia, tvb())
	if found.repeated then
		generated(tree, F.repeated, true)
		return "repeated packet"
	elseif found.gap and not found.msg then
		tree:add_proto_expert_info(X.missing)
	end
	local msg = found.msg
	if msg then
		show_message(tree, msg, tvb, imm)
		return summary(msg)
	end
	local part = found.part
	if part then
		generated(tree, F.whole_in, part.msg and part.msg.frames[#part.msg.frames])
	end
	if tvb:len() > 0 then
		tree:add(F.payload, tvb())
	end
	return "part of a message"
end

-- Several messages may share a frame.
local function set_columns(pinfo, list)
	pinfo.cols.protocol = "SOVIA"
	pinfo.cols.info = table.concat(list, "; ")
end

-- ---- hellos ----

local function read_hello(bytes)
	if #bytes < HELLO_LEN then
		return nil
	end
	local hello = {}
	hello.magic, hello.version, hello.lane, hello.window, hello.payload, hello.rx_next, hello.id, hello.peer_id,
		hello.generation = Struct.unpack(">I4BBI2I4I4c8c8I4", bytes)
	return hello
end

-- As sovia_hello_parse().
local function hello_fault(hello)
	local fresh = hello.peer_id == ("\0"):rep(8)
	if hello.magic ~= WIRE_MAGIC then
		return "not a hello"
	elseif hello.version ~= WIRE_VERSION then
		return "version"
	elseif hello.window == 0 or hello.window > WINDOW_MAX then
		return "window"
	elseif hello.payload < PAYLOAD_MIN or hello.payload > PAYLOAD_MAX then
		return "payload"
	elseif hello.id == ("\0"):rep(8) then
		return "no id"
	elseif fresh and hello.rx_next ~= 0 then
		return "messages on a link that is to be"
	elseif hello.lane >= LANES_MAX then
		return "lane"
	end
	return nil
end

local HELLO_FIELDS = {
	{ "magic", 4 }, { "version", 1 }, { "lane", 1 }, { "window", 2 }, { "payload", 4 }, { "rx_next", 4 },
	{ "id", 8 }, { "peer_id", 8 }, { "generation", 4 }, { "zero", 4 }, { "mac", 16 },
}

local function show_hello(tree, tvb, hello)
	local offset = 0
	if not hello then
		tree:add_proto_expert_info(X.hello, "Hello is too short")
		return
	end
	for _, field in ipairs(HELLO_FIELDS) do
		tree:add(F["hello." .. field[1]], tvb(offset, field[2]))
		offset = offset + field[2]
	end
	local fault = hello_fault(hello)
	if fault then
		tree:add_proto_expert_info(X.hello, "Hello: " .. fault)
	end
end

local function show_reject(tree, tvb)
	if tvb:len() < REJECT_LEN or tvb(0, 4):uint() ~= WIRE_MAGIC then
		tree:add_proto_expert_info(X.refused, "Rejected by the connection manager")
		return ""
	end
	local code = tvb(4, 4):uint()
	local text = CODES[code] or tostring(code)
	tree:add(F["reject.magic"], tvb(0, 4))
	tree:add(F["reject.code"], tvb(4, 4))
	tree:add_proto_expert_info(X.refused, "Link rejected: " .. text)
	return " " .. text
end

-- ---- the connection manager's messages ----

-- What is in a message of the connection manager:
--	kind	REQ, REP, REJ, RTU, DREQ or DREP
--	hello	of REQ and REP
--	request, answer, frame, at	for show_match()
local function hello_summary(found)
	local hello = found.hello
	if not hello then
		return ""
	end
	local fresh = hello.peer_id == ("\0"):rep(8)
	return string.format(" %s lane=%d window=%d payload=%d expects=%d", found.kind == "REQ" and not fresh and "resume" or "link",
		hello.lane, hello.window, hello.payload, hello.rx_next)
end

local function show_cm(root, pinfo, found, tvb)
	local tree = root:add(sovia, tvb())
	local text = found.kind
	generated(tree, F.cm, found.kind)
	if found.kind == "REQ" or found.kind == "REP" then
		show_hello(tree, tvb, found.hello)
		text = text .. hello_summary(found)
	elseif found.kind == "REJ" then
		text = text .. show_reject(tree, tvb)
	end
	tree:append_text(", " .. text)
	show_match(tree, found, "")
	set_columns(pinfo, { text })
end

-- A REQ or REP of a VI, or another message; what comes again is not taken.
local function take_cm(vi, found, bytes)
	if found.kind == "REQ" then
		vi.request = vi.request or found
		found.hello = read_hello(bytes)
		if found.hello and vi.request == found then
			introduce(vi.asker, found.hello)
		end
	elseif found.kind == "REP" then
		found.hello = read_hello(bytes)
		if found.hello and not vi.answered then
			introduce(vi.answerer, found.hello)
			vi.asker.whole, vi.answerer.whole = true, true
			vi.answered = true
		end
	end
	if found.kind == "REP" or found.kind == "REJ" then
		found.request = vi.request
		if vi.request then
			vi.request.answer = vi.request.answer or found
		end
	end
	return found
end

local function bytes_of(tvb, len) return tvb:raw(0, math.min(tvb:len(), len)) end

-- ---- RoCE and InfiniBand ----

-- Of the packet, where it comes from or goes to.
local function address(pinfo, which)
	local found = GET["ip_" .. which]() or GET["ipv6_" .. which]()
	return found and tostring(found.range:bytes()) or tostring(pinfo[which])
end

-- RDMA_PS_TCP and the port: rdma_cm's service ids.
local function is_our_service(id)
	return id:higher() == 0 and id:lower() == 0x01060000 + sovia.prefs.service
end

local function cm_request(pinfo)
	local service = get("service")
	local sender = address(pinfo, "src")
	local key, qp = sender .. "/" .. get("req"), sender .. "/" .. get("req_qp")
	if not is_our_service(service) then
		ways[qp], cm[key] = false, { foreign = true }
		return cm[key]
	end
	local vi = cm[key]
	-- one that is repeated asks for the same queue pair
	if not vi or vi.qp ~= qp then
		vi = new_vi()
		vi.qp, cm[key], ways[qp] = qp, vi, vi.answerer
		vi.asker.packet = get("req_psn")
	end
	return vi
end

local function cm_reply(pinfo)
	local sender = address(pinfo, "src")
	local vi = cm[address(pinfo, "dst") .. "/" .. get("rep_to")]
	local qp = sender .. "/" .. get("rep_qp")
	if not vi then
		return nil
	end
	cm[sender .. "/" .. get("rep")] = vi
	if vi.foreign then
		ways[qp] = false
	elseif not vi.answered then
		ways[qp], vi.answerer.packet = vi.asker, get("rep_psn")
	end
	return vi
end

local function cm_other(pinfo, kind)
	return cm[address(pinfo, "dst") .. "/" .. get(kind .. "_to")] or cm[address(pinfo, "src") .. "/" .. get(kind)]
end

local function read_cm(tvb, pinfo)
	for _, kind in ipairs({ "req", "rep", "rej", "rtu", "dreq", "drep" }) do
		if GET[kind]() then
			local vi
			if kind == "req" then
				vi = cm_request(pinfo)
			elseif kind == "rep" then
				vi = cm_reply(pinfo)
			else
				vi = cm_other(pinfo, kind)
			end
			if not vi or vi.foreign then
				return { foreign = true }
			end
			return take_cm(vi, { kind = kind:upper(), frame = pinfo.number, at = pinfo.rel_ts }, bytes_of(tvb, HELLO_LEN))
		end
	end
	return nil
end

local function dissect_cm(tvb, pinfo, root)
	local found = once(pinfo, function()
		return read_cm(tvb, pinfo)
	end)
	if not found or found.foreign then
		return false
	end
	show_cm(root, pinfo, found, tvb)
	return true
end

-- RC SEND: first, middle, last, last with immediate, only, only with immediate.
local function split_packet(tvb, pinfo, opcode)
	local imm = GET.imm()
	local len = tvb:reported_len() - get("pad")
	return {
		first = opcode == 0 or opcode >= 4, last = opcode >= 2,
		imm = (opcode == 3 or opcode == 5) and imm and imm.range:uint() or nil,
		len = len, bytes = bytes_of(tvb, math.min(len, HEAD_LEN)),
		number = get("psn"), step = 1, modulus = 0x1000000, frame = pinfo.number, at = pinfo.rel_ts,
	}
end

-- A packet of a queue pair whose set-up is not known is a message if all of its header fits.
local function looks_like_message(packet)
	local hdr = packet.first and packet.last and not packet.imm and split_header(packet.bytes)
	if not hdr or header_fault(hdr, packet.len, WIRE_VERSION, PAYLOAD_MAX) then
		return false
	end
	local _, rest = flag_names(hdr.flags)
	return rest == 0 and hdr.code < CODE_COUNT and (hdr.code == 0 or hdr.type == REFUSE or hdr.type == RESET)
end

local function read_packet(tvb, pinfo)
	local opcode = get("opcode")
	if not opcode then
		return nil
	elseif opcode > 5 then
		return { foreign = true }
	end
	local packet = split_packet(tvb, pinfo, opcode)
	local qp = address(pinfo, "dst") .. "/" .. get("qp")
	local direction = ways[qp]
	if direction == nil and sovia.prefs.unknown and looks_like_message(packet) then
		direction = new_direction()
		ways[qp] = direction
	end
	return direction and take_packet(direction, packet) or { foreign = true }
end

local function dissect_payload(tvb, pinfo, root)
	local found = once(pinfo, function()
		return read_packet(tvb, pinfo)
	end)
	if not found or found.foreign then
		return false
	end
	local imm = GET.imm()
	local len = math.min(tvb:len(), tvb:reported_len() - (get("pad") or 0))
	set_columns(pinfo, { show_packet(root, found, tvb(0, len):tvb(), imm and imm.range) })
	return true
end

-- ---- iWARP ----

local DDP_LEN = 18 -- control, RDMAP control, STag, queue, message, offset

-- A frame of MPA with a SEND; tvb begins with its length.
local function split_fpdu(tvb, pinfo)
	if tvb:len() < 2 + DDP_LEN then
		return nil
	end
	local len, ddp, rdmap, queue, number, offset = Struct.unpack(">I2BBxxxxI4I4I4", tvb:raw(0, 2 + DDP_LEN))
	local opcode = rdmap % 16
	if len < DDP_LEN or has_flag(ddp, 0x80) or queue ~= 0 or opcode < 3 or opcode > 6 then
		return nil
	end
	local last, body = has_flag(ddp, 0x40), 2 + DDP_LEN
	len = math.min(len - DDP_LEN, tvb:len() - body)
	return {
		first = offset == 0, last = last, len = len,
		bytes = tvb:raw(body, math.min(len, HEAD_LEN)),
		number = number, step = last and 1 or 0, modulus = 0x100000000, frame = pinfo.number, at = pinfo.rel_ts,
		offset = body,
	}
end

-- Enhanced set-up (RFC 6581) puts four bytes before the private data.
local function private_data()
	local found = GET.mpa_private()
	local range = found and found.range
	if not range then
		return nil
	elseif has_flag(get("mpa_flags") or 0, 0x10) then
		return range:len() > 4 and range:range(4):tvb() or nil
	end
	return range:tvb()
end

local function read_mpa(pinfo, stream)
	local tvb, kind = private_data(), GET.mpa_req() and "REQ" or get("mpa_rejected") and "REJ" or "REP"
	local bytes = tvb and bytes_of(tvb, HELLO_LEN) or ""
	if kind == "REQ" and bytes:sub(1, 4) == "SOVA" then
		streams[stream] = new_vi()
		streams[stream].port = pinfo.src_port
	end
	local vi = streams[stream]
	if not vi then
		return { foreign = true }
	end
	return { cm = take_cm(vi, { kind = kind, frame = pinfo.number, at = pinfo.rel_ts }, bytes) }
end

local function read_fpdus(pinfo, stream)
	local vi, list = streams[stream], {}
	if not vi then
		return { foreign = true }
	end
	local direction = pinfo.src_port == vi.port and vi.asker or vi.answerer
	for i, fpdu in ipairs({ all_fpdus() }) do
		local packet = split_fpdu(fpdu.range:tvb(), pinfo)
		if packet then
			local found = take_packet(direction, packet)
			found.offset, found.len = packet.offset, packet.len
			list[i] = found
		end
	end
	return { list = list }
end

local function read_iwarp(pinfo)
	local stream = get("stream")
	if GET.mpa_req() or GET.mpa_rep() then
		return read_mpa(pinfo, stream)
	elseif all_fpdus() then
		return read_fpdus(pinfo, stream)
	end
	return nil
end

local function show_fpdus(root, pinfo, list)
	local info = {}
	for i, fpdu in ipairs({ all_fpdus() }) do
		local found = list[i]
		if found then
			info[#info + 1] = show_packet(root, found, fpdu.range:range(found.offset, found.len):tvb())
		end
	end
	if #info > 0 then
		set_columns(pinfo, info)
	end
end

function iwarp.dissector(_, pinfo, root)
	-- With markers the frames are not what the field has; RFC 5044 recommends none.
	if not (all_fpdus() or GET.mpa_private()) or GET.mpa_markers() then
		return
	end
	local found = once(pinfo, function()
		return read_iwarp(pinfo)
	end)
	if found and found.cm then
		local tvb = private_data()
		if tvb then
			show_cm(root, pinfo, found.cm, tvb)
		end
	elseif found and found.list then
		show_fpdus(root, pinfo, found.list)
	end
end

-- Keeps other dissectors away from payload of ours, which may look like anything.
local function claim_iwarp()
	return streams[get("stream")] ~= nil
end

-- ---- rendezvous ----

local RDV_HELLO = {
	{ "version_min", 1 }, { "version_max", 1 }, { "flags", 2 }, { "nways", 1 }, { "nkeys", 1 }, { "zero", 2 },
	{ "features", 8 }, { "instance", 16 }, { "saddr", 16 }, { "daddr", 16 }, { "nonce", 32 }, { "window", 2 },
	{ "lanes", 2 }, { "payload", 4 }, { "early", 4 }, { "reads", 2 }, { "rmem", 2 },
}
local RDV_FLAGS = { { 1, "again" }, { 2, "join" } }
local RDV_FEATURES = { { 1, "trial" }, { 2, "return" }, { 4, "grow" }, { 8, "park" } }
local RDV_VERBS = { { "pkey", 2 }, { "mtu", 2 }, { "gid", 16 }, { "addr", 16 } }

local rdv_streams

function rdv.init() rdv_streams = {} end

local function rdv_fault(tree, text)
	tree:add_proto_expert_info(X.rdv, "Rendezvous: " .. text)
end

-- As offer_check() of kmod/link/rdv_wire.c.
local function offer_fault(tvb)
	local window, lanes, payload = tvb(104, 2):uint(), tvb(106, 2):uint(), tvb(108, 4):uint()
	local oldest = tvb(8, 1):uint()
	if oldest == 0 or oldest > tvb(9, 1):uint() then
		return "versions"
	elseif window == 0 or window > WINDOW_MAX then
		return "window"
	elseif payload < PAYLOAD_MIN or payload > PAYLOAD_MAX then
		return "payload"
	elseif lanes == 0 or lanes > LANES_MAX then
		return "lanes"
	end
	return nil
end

local function show_offer(tree, tvb)
	local offset = RDV_HDR_LEN
	for _, field in ipairs(RDV_HELLO) do
		local name, range = field[1], tvb(offset, field[2])
		local item = tree:add(F["rdv." .. name], range)
		if name == "flags" then
			show_bits(item, nil, "rdv.flags.", RDV_FLAGS, range)
		elseif name == "features" then
			show_bits(item, nil, "rdv.features.", RDV_FEATURES, tvb(offset + 7, 1))
		end
		offset = offset + field[2]
	end
	local fault = offer_fault(tvb)
	if fault then
		rdv_fault(tree, fault)
	end
end

local function show_way(root, tvb, offset)
	local type = tvb(offset, 1):uint()
	local tree = root:add(rdv, tvb(offset, RDV_WAY_LEN), "Way: " .. (RDV_WAY_TYPES[type] or type))
	tree:add(F["rdv.way.type"], tvb(offset, 1))
	tree:add(F["rdv.way.gid_type"], tvb(offset + 1, 1))
	tree:add(F["rdv.way.flags"], tvb(offset + 2, 2))
	if type == RDV_WAY_CLAN then
		tree:add(F["rdv.clan.uuid"], tvb(offset + 8, 16))
		tree:add(F["rdv.clan.number"], tvb(offset + 24, 4))
		tree:add(F["rdv.clan.generation"], tvb(offset + 28, 4))
		tree:add(F["rdv.clan.zero"], tvb(offset + 32, 8))
		return
	end
	offset = offset + 4
	for _, field in ipairs(RDV_VERBS) do
		tree:add(F["rdv.way." .. field[1]], tvb(offset, field[2]))
		offset = offset + field[2]
	end
end

-- Ways, keys, and the MAC.
local function show_tail(tree, tvb, offset, nways, nkeys, has_mac)
	if tvb:len() ~= offset + nways * RDV_WAY_LEN + nkeys * 8 + (has_mac and RDV_MAC_LEN or 0) then
		rdv_fault(tree, "length")
		return
	end
	for _ = 1, nways do
		show_way(tree, tvb, offset)
		offset = offset + RDV_WAY_LEN
	end
	for _ = 1, nkeys do
		tree:add(F["rdv.key"], tvb(offset, 8))
		offset = offset + 8
	end
	if has_mac then
		tree:add(F["rdv.mac"], tvb(offset, RDV_MAC_LEN))
	end
end

local function show_code(tree, tvb, offset)
	local code = tvb(offset, 2):uint()
	local name = RDV_CODES[code] or tostring(code)
	tree:add(F["rdv.code"], tvb(offset, 2))
	tree:add(F["rdv.zero"], tvb(offset + 2, 2))
	tree:add(F["rdv.retry_ms"], tvb(offset + 4, 4))
	if code ~= 0 then
		tree:add_proto_expert_info(X.rdv_refused, "Rendezvous: " .. name)
	end
	return name
end

local RDV_SHOW = {}

function RDV_SHOW.HELLO(tree, tvb)
	if tvb:len() < RDV_HELLO_LEN then
		return rdv_fault(tree, "length")
	end
	local flags, nways, nkeys = tvb(10, 2):uint(), tvb(12, 1):uint(), tvb(13, 1):uint()
	show_offer(tree, tvb)
	if nways > RDV_WAYS or nkeys > RDV_KEYS then
		return rdv_fault(tree, "too many ways or keys")
	end
	show_tail(tree, tvb, RDV_HELLO_LEN, nways, nkeys, flags % 4 ~= 0)
	return (has_flag(flags, 1) and " AGAIN" or "") .. (has_flag(flags, 2) and " JOIN" or "")
end

function RDV_SHOW.ANSWER(tree, tvb)
	if tvb:len() < RDV_ANSWER_LEN then
		return rdv_fault(tree, "length")
	end
	local nways, nkeys = tvb(12, 1):uint(), tvb(13, 1):uint()
	show_offer(tree, tvb)
	local name = show_code(tree, tvb, RDV_HELLO_LEN)
	tree:add(F["rdv.key"], tvb(RDV_HELLO_LEN + 8, 8))
	-- a refusal chooses no way
	if nkeys > 0 or nways > (name == "OK" and 1 or 0) then
		return rdv_fault(tree, "ways or keys in ANSWER")
	end
	show_tail(tree, tvb, RDV_ANSWER_LEN, nways, 0, true)
	return " " .. name
end

function RDV_SHOW.PING(tree, tvb)
	if tvb:len() ~= 16 then
		return rdv_fault(tree, "length")
	end
	tree:add(F["rdv.number"], tvb(8, 8))
	return ""
end
RDV_SHOW.PONG = RDV_SHOW.PING

function RDV_SHOW.CLOSE(tree, tvb)
	if tvb:len() ~= 16 then
		return rdv_fault(tree, "length")
	end
	return " " .. show_code(tree, tvb, 8)
end

function RDV_SHOW.CONFIRM(tree, tvb)
	show_tail(tree, tvb, RDV_HDR_LEN, 0, 0, true)
	return ""
end

-- HELLO and ANSWER, PING and PONG of the same number.
local function match_rdv(tvb, pinfo, type)
	local stream = get("stream")
	local msg = { frame = pinfo.number, at = pinfo.rel_ts }
	if not stream then
		return msg
	end
	rdv_streams[stream] = rdv_streams[stream] or { seen = {}, asked = {} }
	local state = rdv_streams[stream]
	local key = pinfo.number .. "/" .. tvb:offset()
	if state.seen[key] then
		return state.seen[key]
	end
	state.seen[key] = msg
	local number = tvb:len() == 16 and tostring(tvb(8, 8):bytes()) or ""
	if type == "HELLO" or type == "PING" then
		state.asked[type .. number] = msg
	elseif type == "ANSWER" or type == "PONG" then
		msg.request = state.asked[type == "PONG" and "PING" .. number or "HELLO"]
		if msg.request then
			msg.request.answer = msg.request.answer or msg
		end
	end
	return msg
end

local function show_rdv_header(tree, tvb)
	tree:add(F["rdv.magic"], tvb(0, 4))
	tree:add(F["rdv.type"], tvb(4, 1))
	tree:add(F["rdv.framing"], tvb(5, 1))
	tree:add(F["rdv.len"], tvb(6, 2))
end

-- As sovia_rdv_length(); nil if there is no message.
local function rdv_length(tvb, offset)
	local len = tvb(offset + 6, 2):uint()
	if tvb(offset, 4):uint() ~= RDV_MAGIC or tvb(offset + 5, 1):uint() ~= RDV_FRAMING or len < RDV_HDR_LEN or len > RDV_LEN_MAX then
		return nil
	end
	return len
end

local function dissect_rdv(tvb, pinfo, root)
	local tree = root:add(rdv, tvb())
	pinfo.cols.protocol = "SOVIA"
	if tvb:len() < RDV_HDR_LEN or not rdv_length(tvb, 0) then
		rdv_fault(tree, "not a message")
		return tvb:len()
	end
	local number = tvb(4, 1):uint()
	local type = RDV_TYPES[number]
	show_rdv_header(tree, tvb)
	if not type then
		rdv_fault(tree, "unknown type")
		return tvb:len()
	end
	local text = type .. (RDV_SHOW[type](tree, tvb) or "")
	tree:append_text(", " .. text)
	show_match(tree, match_rdv(tvb, pinfo, type), "rdv.")
	pinfo.cols.info:append(" " .. text)
	return tvb:len()
end

function rdv.dissector(tvb, pinfo, root)
	pinfo.cols.info = string.format("%d → %d", pinfo.src_port, pinfo.dst_port)
	-- What is no message ends the connection: all of it is one fault.
	dissect_tcp_pdus(tvb, root, RDV_HDR_LEN, function(buffer, _, offset)
		return rdv_length(buffer, offset) or buffer:len() - offset
	end, dissect_rdv)
end

local rdv_port

local function register_rdv_port()
	local tcp = DissectorTable.get("tcp.port")
	if rdv_port then
		tcp:remove(rdv_port, rdv)
	end
	rdv_port = rdv.prefs.port
	tcp:add(rdv_port, rdv)
end

rdv.prefs_changed = register_rdv_port

-- ---- registration ----

sovia:register_heuristic("infiniband.mad.cm.private", dissect_cm)
sovia:register_heuristic("infiniband.payload", dissect_payload)
sovia:register_heuristic("iwarp_ddp_rdmap", claim_iwarp)
register_postdissector(iwarp)
register_rdv_port()
