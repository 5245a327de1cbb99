-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
--
-- Wireshark dissector for the rendezvous of AF_SOVIA, over TCP (include/sovia/rendezvous.h).  For
-- Wireshark 4.0 and later; see Documentation/dissector.rst.

local rdv = Proto("sovia.rdv", "AF_SOVIA Rendezvous")

-- ---- rendezvous.h ----

local WINDOW_MAX, PAYLOAD_MIN, PAYLOAD_MAX, LANES_MAX = 1024, 2048, 65536, 16

local MAGIC, FRAMING = 0x534f5652, 1
local HDR_LEN, LEN_MAX = 8, 512
local HELLO_LEN, ANSWER_LEN, WAY_LEN, MAC_LEN = 120, 136, 40, 32
local WAYS, KEYS, WAY_CLAN = 4, 4, 4
local TYPES = { "HELLO", "ANSWER", "PING", "PONG", "CLOSE", "CONFIRM" }
local CODES = {
	[0] = "OK", "BUSY", "CROSSED", "NO_VERSION", "NO_KEY", "NAT", "SHARED", "NO_WAY", "DENIED", "LEAVING", "IDLE",
}
local WAY_TYPES = { "IB", "ROCE", "IWARP", "CLAN" }

-- ---- fields ----

local F = {}

for _, entry in ipairs({
	-- struct sovia_rdv_hdr
	{ "uint32", "magic", "Magic", base.HEX },
	{ "uint8", "type", "Type", base.DEC, TYPES },
	{ "uint8", "framing", "Framing" },
	{ "uint16", "len", "Length" },
	-- struct sovia_rdv_hello
	{ "uint8", "version_min", "Oldest version" },
	{ "uint8", "version_max", "Newest version" },
	{ "uint16", "flags", "Flags", base.HEX },
	{ "bool", "flags.again", "AGAIN: another anchor, the same secret", 16, nil, 0x0001 },
	{ "bool", "flags.join", "JOIN: the other direction, too", 16, nil, 0x0002 },
	{ "uint8", "nways", "Number of ways" },
	{ "uint8", "nkeys", "Number of keys" },
	{ "uint16", "zero", "Zero", base.HEX },
	{ "uint64", "features", "Features", base.HEX },
	{ "bool", "features.trial", "TRIAL: lanes are tried", 8, nil, 0x01 },
	{ "bool", "features.return", "RETURN: PRESSURE and RETURN", 8, nil, 0x02 },
	{ "bool", "features.grow", "GROW: windows of lanes grow", 8, nil, 0x04 },
	{ "bool", "features.park", "PARK: idle links are parked", 8, nil, 0x08 },
	{ "bytes", "instance", "Instance" },
	{ "ipv6", "saddr", "Sender's address" },
	{ "ipv6", "daddr", "Receiver's address" },
	{ "bytes", "nonce", "Nonce" },
	{ "uint16", "window", "Window (messages)" },
	{ "uint16", "lanes", "Lanes" },
	{ "uint32", "payload", "Largest payload" },
	{ "uint32", "early", "Bytes that CONN may bring" },
	{ "uint16", "reads", "One-sided READs at once" },
	{ "uint16", "rmem", "One-sided requests taken" },
	-- struct sovia_rdv_way, struct sovia_rdv_clan
	{ "uint8", "way.type", "Type", base.DEC, WAY_TYPES },
	{ "uint8", "way.gid_type", "GID type" },
	{ "uint16", "way.flags", "Flags", base.HEX },
	{ "uint16", "way.pkey", "P_Key", base.HEX },
	{ "uint16", "way.mtu", "MTU" },
	{ "bytes", "way.gid", "GID" },
	{ "ipv6", "way.addr", "Address" },
	{ "bytes", "clan.uuid", "Memory" },
	{ "uint32", "clan.number", "Node" },
	{ "uint32", "clan.generation", "Generation" },
	{ "bytes", "clan.zero", "Zero" },
	-- struct sovia_rdv_answer, _ping, _close
	{ "uint16", "code", "Code", base.DEC, CODES },
	{ "uint32", "retry_ms", "Again after (ms)" },
	{ "uint64", "key", "Key", base.HEX },
	{ "uint64", "number", "Number", base.HEX },
	{ "bytes", "mac", "MAC" },
	-- what the dissector adds
	{ "framenum", "answer_in", "Answer in", base.NONE, frametype.RESPONSE },
	{ "framenum", "request_in", "Answers", base.NONE, frametype.REQUEST },
	{ "relative_time", "time", "Time from request to answer" },
}) do
	F[entry[2]] = ProtoField[entry[1]]("sovia.rdv." .. entry[2], table.unpack(entry, 3))
end
rdv.fields = F

local FAULT = ProtoExpert.new("sovia.rdv.expert.fault", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
local REFUSED = ProtoExpert.new("sovia.rdv.expert.refused", "No link", expert.group.RESPONSE_CODE, expert.severity.NOTE)
local CUT = ProtoExpert.new("sovia.rdv.expert.cut", "Not captured completely", expert.group.UNDECODED, expert.severity.NOTE)
rdv.experts = { FAULT, REFUSED, CUT }

rdv.prefs.port = Pref.uint("Port", 298, "TCP port of the answerer (parameter port)")

local get_stream = Field.new("tcp.stream")

-- By TCP stream: requests that wait for an answer, and what match() has found for a message.
local streams

function rdv.init()
	streams = {}
end

-- ---- showing messages ----

local HELLO_FIELDS = {
	{ "version_min", 1 }, { "version_max", 1 }, { "flags", 2 }, { "nways", 1 }, { "nkeys", 1 }, { "zero", 2 },
	{ "features", 8 }, { "instance", 16 }, { "saddr", 16 }, { "daddr", 16 }, { "nonce", 32 }, { "window", 2 },
	{ "lanes", 2 }, { "payload", 4 }, { "early", 4 }, { "reads", 2 }, { "rmem", 2 },
}
local WAY_FIELDS = {
	{ "way.type", 1 }, { "way.gid_type", 1 }, { "way.flags", 2 }, { "way.pkey", 2 }, { "way.mtu", 2 },
	{ "way.gid", 16 }, { "way.addr", 16 },
}
local CLAN_FIELDS = {
	{ "way.type", 1 }, { "way.gid_type", 1 }, { "way.flags", 2 }, { "way.pkey", 2 }, { "way.mtu", 2 },
	{ "clan.uuid", 16 }, { "clan.number", 4 }, { "clan.generation", 4 }, { "clan.zero", 8 },
}

-- Bits of a field, and which of its bytes has them.
local BITS = {
	flags = { 0, 2, { "flags.again", "flags.join" } },
	features = { 7, 1, { "features.trial", "features.return", "features.grow", "features.park" } },
}

local function name_in(names, number) return names[number] or string.format("%d", number) end

local function fault(tree, text)
	tree:add_proto_expert_info(FAULT, "Rendezvous: " .. text)
end

-- Adds fields one after the other; returns the offset behind them.
local function add_fields(tree, tvb, offset, fields)
	for _, field in ipairs(fields) do
		local name, bits = field[1], BITS[field[1]]
		local item = tree:add(F[name], tvb(offset, field[2]))
		for _, bit in ipairs(bits and bits[3] or {}) do
			item:add(F[bit], tvb(offset + bits[1], bits[2]))
		end
		offset = offset + field[2]
	end
	return offset
end

-- As offer_check() of kmod/peer/rdv_wire.c.
local function offer_fault(tvb)
	local oldest, newest = tvb(8, 1):uint(), tvb(9, 1):uint()
	local window, lanes, payload = tvb(104, 2):uint(), tvb(106, 2):uint(), tvb(108, 4):uint()
	if oldest == 0 or oldest > newest then
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
	local what = offer_fault(tvb)
	add_fields(tree, tvb, HDR_LEN, HELLO_FIELDS)
	if what then
		fault(tree, what)
	end
end

-- Ways, keys, and the MAC, which end the message.
local function show_tail(tree, tvb, offset, nways, nkeys, has_mac)
	if tvb:len() ~= offset + nways * WAY_LEN + nkeys * 8 + (has_mac and MAC_LEN or 0) then
		fault(tree, "length")
		return
	end
	for _ = 1, nways do
		local type = tvb(offset, 1):uint()
		local way = tree:add(rdv, tvb(offset, WAY_LEN), "Way: " .. name_in(WAY_TYPES, type))
		offset = add_fields(way, tvb, offset, type == WAY_CLAN and CLAN_FIELDS or WAY_FIELDS)
	end
	for _ = 1, nkeys do
		offset = add_fields(tree, tvb, offset, { { "key", 8 } })
	end
	if has_mac then
		add_fields(tree, tvb, offset, { { "mac", MAC_LEN } })
	end
end

local function show_code(tree, tvb, offset)
	local code = tvb(offset, 2):uint()
	local name = name_in(CODES, code)
	add_fields(tree, tvb, offset, { { "code", 2 }, { "zero", 2 }, { "retry_ms", 4 } })
	if code ~= 0 then
		tree:add_proto_expert_info(REFUSED, "Rendezvous: " .. name)
	end
	return " " .. name
end

-- By type: the least length, whether a message may be longer, and what shows it, which returns more for the Info column.
local SHOW = {}

SHOW.HELLO = { HELLO_LEN, true, function(tree, tvb)
	local flags, nways, nkeys = tvb(10, 2):uint(), tvb(12, 1):uint(), tvb(13, 1):uint()
	show_offer(tree, tvb)
	if nways > WAYS or nkeys > KEYS then
		fault(tree, "too many ways or keys")
	else
		show_tail(tree, tvb, HELLO_LEN, nways, nkeys, flags % 4 ~= 0)
	end
	return (flags % 2 ~= 0 and " AGAIN" or "") .. (flags % 4 >= 2 and " JOIN" or "")
end }

SHOW.ANSWER = { ANSWER_LEN, true, function(tree, tvb)
	local nways, nkeys = tvb(12, 1):uint(), tvb(13, 1):uint()
	show_offer(tree, tvb)
	local text = show_code(tree, tvb, HELLO_LEN)
	add_fields(tree, tvb, HELLO_LEN + 8, { { "key", 8 } })
	-- a refusal chooses no way
	if nkeys > 0 or nways > (text == " OK" and 1 or 0) then
		fault(tree, "ways or keys in ANSWER")
	else
		show_tail(tree, tvb, ANSWER_LEN, nways, 0, true)
	end
	return text
end }

SHOW.PING = { 16, false, function(tree, tvb)
	add_fields(tree, tvb, HDR_LEN, { { "number", 8 } })
	return ""
end }
SHOW.PONG = SHOW.PING

SHOW.CLOSE = { 16, false, function(tree, tvb) return show_code(tree, tvb, HDR_LEN) end }

SHOW.CONFIRM = { HDR_LEN + MAC_LEN, false, function(tree, tvb)
	show_tail(tree, tvb, HDR_LEN, 0, 0, true)
	return ""
end }

-- ---- requests and answers ----

local ASKED = { ANSWER = "HELLO", PONG = "PING" }

-- A message is matched once: packets may be dissected again.
local function match(stream, key, type, number, msg)
	streams[stream] = streams[stream] or { asked = {}, found = {} }
	local asked, found = streams[stream].asked, streams[stream].found
	if found[key] then
		return found[key]
	end
	found[key] = msg
	if type == "HELLO" or type == "PING" then
		asked[type .. number] = msg
	elseif ASKED[type] then
		msg.request = asked[ASKED[type] .. number]
		if msg.request then
			msg.request.answer = msg
		end
	end
	return msg
end

local function show_match(tree, tvb, pinfo, type)
	local stream = get_stream()
	if not stream then
		return
	end
	local number = SHOW[type] == SHOW.PING and tostring(tvb(HDR_LEN, 8):bytes()) or ""
	local msg = match(stream.value, pinfo.number .. "/" .. tvb:offset(), type, number, { frame = pinfo.number, at = pinfo.rel_ts })
	if msg.answer then
		tree:add(F.answer_in, msg.answer.frame):set_generated()
	elseif msg.request then
		local ns = math.floor((msg.at - msg.request.at) * 1e9 + 0.5)
		local seconds = math.floor(ns / 1e9)
		tree:add(F.request_in, msg.request.frame):set_generated()
		tree:add(F.time, NSTime.new(seconds, ns - seconds * 1e9)):set_generated()
	end
end

-- ---- messages ----

-- As sovia_rdv_length(); nil if there is no message.
local function message_length(tvb, offset)
	if tvb:len() < offset + HDR_LEN then
		return nil
	end
	local len = tvb(offset + 6, 2):uint()
	if tvb(offset, 4):uint() ~= MAGIC or tvb(offset + 5, 1):uint() ~= FRAMING or len < HDR_LEN or len > LEN_MAX then
		return nil
	end
	return len
end

local function show_message(tree, tvb, pinfo)
	local type = TYPES[tvb(4, 1):uint()]
	local show = SHOW[type]
	add_fields(tree, tvb, 0, { { "magic", 4 }, { "type", 1 }, { "framing", 1 }, { "len", 2 } })
	if not type then
		fault(tree, "unknown type")
		return "unknown type"
	elseif tvb:len() < show[1] or tvb:len() > show[1] and not show[2] then
		fault(tree, "length")
		return type
	end
	local text = type .. show[3](tree, tvb)
	show_match(tree, tvb, pinfo, type)
	return text
end

local function dissect_message(tvb, pinfo, root)
	local tree = root:add(rdv, tvb())
	local text = "not a message"
	pinfo.cols.protocol = "SOVIA"
	if tvb:len() < tvb:reported_len() then
		text = "not captured completely"
		tree:add_proto_expert_info(CUT)
	elseif message_length(tvb, 0) then
		text = show_message(tree, tvb, pinfo)
	else
		fault(tree, text)
	end
	tree:append_text(", " .. text)
	pinfo.cols.info:append(" " .. text)
	return tvb:len()
end

function rdv.dissector(tvb, pinfo, root)
	pinfo.cols.info = string.format("%d → %d", pinfo.src_port, pinfo.dst_port)
	-- What is no message ends the connection: the rest is one fault.
	dissect_tcp_pdus(tvb, root, HDR_LEN, function(buffer, _, offset)
		return message_length(buffer, offset) or math.max(HDR_LEN, buffer:reported_length_remaining(offset))
	end, dissect_message)
end

local registered

local function register()
	local tcp = DissectorTable.get("tcp.port")
	if registered then
		tcp:remove(registered, rdv)
	end
	registered = rdv.prefs.port
	tcp:add(registered, rdv)
end

rdv.prefs_changed = register
register()
