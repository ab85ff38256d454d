export { SendBulkEmailCommand, SendEmailCommand, SESv2Client } from '@aws-sdk/client-sesv2';
export { MailService } from '@sendgrid/mail';
export { default as Mailgun } from 'mailgun.js';
export { ServerClient } from 'postmark';
export { Resend } from 'resend';
