'use strict';
// A Haraka plugin: every client may relay, and all mail goes to the sink of the benchmark.

exports.register = function () {
  this.next_hop = this.config.get('sink.json');
};

exports.hook_connect = (next, connection) => {
  connection.relaying = true;
  next();
};

exports.hook_rcpt = (next) => next(OK);

exports.hook_get_mx = function (next) {
  next(OK, this.next_hop);
};
