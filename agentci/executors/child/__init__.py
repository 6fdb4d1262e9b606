"""A child process of ours: started, fed, listened to, and ended with all that it started."""
