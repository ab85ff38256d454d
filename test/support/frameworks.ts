import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PHPMAILER } from './required-programs.ts';

/*
 * The parts of Rails and WordPress that send mail, with the commands `rails runner` and `wp eval`: Action Mailer with the
 * settings of config/environments/production.rb, and PHPMailer with the hooks of the must-use plugins.
 */

const RAILS = `#!/usr/bin/env ruby
require 'action_mailer'
abort 'only "runner" is known' unless ARGV.shift == 'runner'
config = Struct.new(:action_mailer).new(ActionMailer::Base)
eval(File.read('config/environments/production.rb'), binding)
eval(ARGV.fetch(0))
`;

const WORDPRESS = `<?php
require '${PHPMAILER}';
if ($argv[1] !== 'eval') exit('only "eval" is known');
$hooks = [];
function add_filter(string $name, callable $call): void { global $hooks; $hooks[$name] = $call; }
function add_action(string $name, callable $call): void { add_filter($name, $call); }
function apply_filters(string $name, mixed $value): mixed { global $hooks; return $hooks[$name]($value); }
function wp_mail(string $to, string $subject, string $message): bool
{
    $mailer = new PHPMailer\\PHPMailer\\PHPMailer(true);
    $mailer->setFrom(apply_filters('wp_mail_from', 'wordpress@localhost'), apply_filters('wp_mail_from_name', 'WordPress'));
    $mailer->addAddress($to);
    $mailer->Subject = $subject;
    $mailer->Body = $message;
    $mailer->isMail();
    apply_filters('phpmailer_init', $mailer);
    return $mailer->send();
}
foreach (glob('wp-content/mu-plugins/*.php') as $plugin) require $plugin;
eval($argv[2]);
`;

/** Writes `bin/rails` into an application's directory. */
export function writeRails(dir: string): void {
  mkdirSync(join(dir, 'bin'));
  writeFileSync(join(dir, 'bin', 'rails'), RAILS, { mode: 0o755 });
}

/** Writes the program that `wp` runs; returns the script of `wp`. */
export function writeWordPress(dir: string): string {
  const file = join(dir, 'wp.php');
  writeFileSync(file, WORDPRESS);
  return `exec php "${file}" "$@"`;
}
