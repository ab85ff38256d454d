/** Name of the operator socket (src/http/operator-socket.ts) in `data.dir`. */
export const OPERATOR_SOCKET = 'operator.sock';
