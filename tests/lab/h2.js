// SPDX-License-Identifier: Apache-2.0
// An HTTP/2 server (HTTP/1.1 too) for the lab: node h2.js CERT KEY ADDRESS...
"use strict";
const crypto = require("crypto");
const fs = require("fs");
const http2 = require("http2");

const [cert, key, ...addresses] = process.argv.slice(2);
let waiting = addresses.length;

function serve(request, response) {
	const digest = crypto.createHash("sha256");
	let bytes = 0;
	request.on("data", (piece) => {
		bytes += piece.length;
		digest.update(piece);
	});
	request.on("end", () => {
		const size = new URL(request.url, "https://h2.test").searchParams.get("n");
		response.writeHead(200, { "x-version": request.httpVersion, "x-host": request.authority || request.headers.host });
		if (size)
			response.end(Buffer.alloc(Number(size), "h"));
		else
			response.end(JSON.stringify({ version: request.httpVersion, bytes, sha256: digest.digest("hex") }) + "\n");
	});
}

for (const address of addresses) {
	const options = { cert: fs.readFileSync(cert), key: fs.readFileSync(key), allowHTTP1: true };
	http2.createSecureServer(options, serve).listen(443, address, () => {
		if (--waiting === 0)
			console.log("ready");
	});
}
