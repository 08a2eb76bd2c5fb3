// Calls a target through the mesh, so many times a second, until its input ends. Says once a second, in a line of JSON, how
// many calls were answered by which zone and how many failed, in all so far.
//
//   GRPC_XDS_BOOTSTRAP_CONFIG='{...}' node caller.js backend.mesh:80 50
'use strict';

const grpc = require('@grpc/grpc-js');
require('@grpc/grpc-js-xds').register();

const [target, rate] = [process.argv[2], Number(process.argv[3] || 50)];
if (!target || !(rate > 0)) {
  console.error('usage: node caller.js TARGET [CALLS A SECOND]');
  process.exit(2);
}

// After three minutes a call is never answered: a busy machine may take long.
const NEVER = 180000;

const client = new grpc.Client('xds:///' + target, grpc.credentials.createInsecure());
const tally = { answered: {}, failed: 0, firstError: '' };

// The answer is a message with one short string, the zone: a tag, a length and the text.
const zone = (message) => message.subarray(2).toString();

function call() {
  const options = { deadline: Date.now() + NEVER };
  client.makeUnaryRequest('/fairlead.Echo/Zone', (m) => m, zone, Buffer.alloc(0), options, (error, from) => {
    if (!error) {
      tally.answered[from] = (tally.answered[from] || 0) + 1;
    } else if (tally.failed++ === 0) {
      tally.firstError = String(error);
    }
  });
}

// A busy machine skips ticks of an interval, and the calls of those are made up for.
const began = Date.now();
let made = 0;
setInterval(() => {
  for (const due = ((Date.now() - began) * rate) / 1000; made < due; made++) {
    call();
  }
}, 1000 / rate);
setInterval(() => console.log(JSON.stringify(tally)), 1000);
process.stdin.resume();
process.stdin.on('end', () => {
  console.log(JSON.stringify(tally));
  process.exit(0);
});
