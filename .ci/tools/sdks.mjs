export { ServerClient } from 'postmark';
