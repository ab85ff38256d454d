/* The parser of received mail, loaded with the first mail that is opened: it is as large as the rest of a reader thread. */
export { simpleParser } from 'mailparser';
